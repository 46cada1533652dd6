//! Header blocks in one frame or several, received in chunks of any size.

use super::*;

fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
    let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
    frame.extend(vec![1; length.into()]);
    frame
}

#[test]
fn a_header_block_lasts_from_its_first_frame_to_the_end_of_its_last() {
    const SETTINGS: u8 = 4;
    const DATA: u8 = 0;
    let steps = [
        (PREFACE.to_vec(), true),
        (frame(SETTINGS, 0, 0), true),
        (frame(HEADERS, 0, 20), true),
        (frame(CONTINUATION, 0, 0), true),
        (frame(CONTINUATION, END_HEADERS, 7), false),
        (frame(DATA, 1, 200), false),
        (frame(HEADERS, END_HEADERS | 1, 0), false),
        (frame(HEADERS, END_HEADERS | 1, 30), false),
        (frame(HEADERS, 1, 30), true),
        (frame(CONTINUATION, END_HEADERS, 0), false),
    ];
    for piece in [1, 2, 7, 1000] {
        let mut frames = FrameTracker::new();
        for (number, (bytes, is_in_head)) in steps.iter().enumerate() {
            for bytes in bytes.chunks(piece) {
                frames.follow(bytes);
            }
            assert_eq!(frames.is_in_head(), *is_in_head, "step {number} in chunks of {piece}");
        }
        assert_eq!(frames.heads(), 4, "in chunks of {piece}");
    }
}

#[test]
fn an_incomplete_frame_ends_no_header_block() {
    let whole = [PREFACE, &frame(HEADERS, END_HEADERS, 20)].concat();
    for cut in 0..whole.len() {
        let mut frames = FrameTracker::new();
        frames.follow(&whole[..cut]);
        assert!(frames.is_in_head(), "{cut}");
        frames.follow(&whole[cut..]);
        assert!(!frames.is_in_head(), "{cut}");
    }
}
