use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::*;

const PLAIN: &[u8] = b"hello\n";

/// `hello` and a line break, encoded by the reference encoder; the dependencies have no encoder.
const BROTLI: &[u8] = b"\x8f\x02\x80\x68\x65\x6c\x6c\x6f\x0a\x03";

const LIMITS: DecodeLimits = DecodeLimits { bytes_max: 1000, ratio_max: 100 };

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn deflate(plain: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn decoded_by(codings: &[&str], sent: &[u8], limits: DecodeLimits) -> Result<Vec<u8>, BodyRefused> {
    let codings: Vec<_> = codings.iter().map(|coding| Cow::Borrowed(coding.as_bytes())).collect();
    decoded(&codings, sent, &limits).map(Cow::into_owned)
}

#[test]
fn f_08_every_named_coding_is_decoded() {
    let twice = [gzip(b"hel"), gzip(b"lo\n")].concat();
    let table: &[(&[&str], Vec<u8>)] = &[
        (&[], PLAIN.to_vec()),
        (&["gzip"], gzip(PLAIN)),
        (&["gzip"], twice),
        (&["deflate"], zlib(PLAIN)),
        (&["deflate"], deflate(PLAIN)),
        (&["br"], BROTLI.to_vec()),
        (&["br", "gzip"], gzip(BROTLI)),
        (&["deflate", "gzip", "gzip"], gzip(&gzip(&zlib(PLAIN)))),
    ];
    for (codings, sent) in table {
        assert_eq!(decoded_by(codings, sent, LIMITS), Ok(PLAIN.to_vec()), "{codings:?}");
    }
}

#[test]
fn f_08_an_unknown_coding_is_refused() {
    for codings in [&["zstd"][..], &["gzip", "compress"], &["aes128gcm", "gzip"], &["gzip"; CODINGS_MAX + 1]]
    {
        assert_eq!(
            decoded_by(codings, &gzip(PLAIN), LIMITS),
            Err(BodyRefused::CodingUnsupported),
            "{codings:?}"
        );
    }
}

#[test]
fn f_08_truncated_corrupt_or_trailing_input_is_refused() {
    for (coding, sent) in [
        ("gzip", gzip(PLAIN)),
        ("deflate", zlib(PLAIN)),
        ("deflate", deflate(PLAIN)),
        ("br", BROTLI.to_vec()),
    ] {
        for length in 0..sent.len() {
            let limits = DecodeLimits { ratio_max: 1000, ..LIMITS };
            let cut = decoded_by(&[coding], &sent[..length], limits);
            assert_eq!(cut, Err(BodyRefused::Undecodable), "{coding} cut to {length}");
        }
        let longer = [&sent[..], b"more"].concat();
        assert_eq!(decoded_by(&[coding], &longer, LIMITS), Err(BodyRefused::Undecodable), "{coding}");
    }
    let mut checksum = gzip(PLAIN);
    let at = checksum.len() - 8;
    checksum[at] ^= 1;
    assert_eq!(decoded_by(&["gzip"], &checksum, LIMITS), Err(BodyRefused::Undecodable));
    assert_eq!(decoded_by(&["br"], &[BROTLI, &[0; 9000]].concat(), LIMITS), Err(BodyRefused::Undecodable));
    for coding in ["gzip", "deflate", "br"] {
        assert_eq!(decoded_by(&[coding], b"\xff plain", LIMITS), Err(BodyRefused::Undecodable), "{coding}");
    }
}

#[test]
fn f_08_decompression_bombs_are_refused() {
    let limits = |bytes_max, ratio_max| DecodeLimits { bytes_max, ratio_max };
    let long = vec![b'a'; 100_000];
    for (coding, sent) in [("gzip", gzip(&long)), ("deflate", zlib(&long)), ("deflate", deflate(&long))] {
        let by = |limits| decoded_by(&[coding], &sent, limits).map(|bytes| bytes.len());
        assert_eq!(by(limits(100_000, 1000)), Ok(100_000));
        assert_eq!(by(limits(99_999, 1000)), Err(BodyRefused::TooLarge));
        assert_eq!(by(limits(100_000, 100)), Err(BodyRefused::TooLarge));
        assert_eq!(by(limits(usize::MAX, usize::MAX)), Ok(100_000));
    }
    assert_eq!(decoded_by(&["br"], BROTLI, limits(6, 1)), Ok(PLAIN.to_vec()));
    assert_eq!(decoded_by(&["br"], BROTLI, limits(5, 1)), Err(BodyRefused::TooLarge));
    // The intermediate result counts too.
    let bomb = gzip(&gzip(&vec![0; 1_000_000]));
    assert_eq!(decoded_by(&["gzip", "gzip"], &bomb, limits(900_000, 100_000)), Err(BodyRefused::TooLarge));
}

#[test]
fn f_08_a_large_window_is_refused() {
    // An empty stream, first with the largest valid window, then with one of a gigabyte.
    assert_eq!(decoded_by(&["br"], &[0x3f], LIMITS), Ok(Vec::new()));
    assert_eq!(decoded_by(&["br"], &[0x11, 0xde], LIMITS), Err(BodyRefused::Undecodable));
}
