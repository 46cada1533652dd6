use hapax_core::Timestamp;

use super::{Request, sign, signing_key};
use crate::credentials::Credentials;
use crate::item::hex;

const AT: Timestamp = Timestamp::from_millis(1_794_774_600_000);

/// The signatures of botocore 1.44 for the same requests.
#[test]
fn signatures_match_another_implementation() {
    let credentials = Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
    let temporary = credentials.clone().with_session_token("token/with+signs==");
    let request = Request {
        region: "eu-central-1",
        host: "dynamodb.eu-central-1.amazonaws.com",
        target: "DynamoDB_20120810.GetItem",
        body: br#"{"TableName":"hapax"}"#,
    };
    let cases = [
        (
            credentials,
            "content-type;host;x-amz-date;x-amz-target",
            "d112f0d857ba8f5deb3ddbe81897b2a7b153ce4332e4088cf0e2b0a06ad185ce",
        ),
        (
            temporary,
            "content-type;host;x-amz-date;x-amz-security-token;x-amz-target",
            "0b67313fc025e4e02a93ab5dbaae2e2ec59bb13e6773ec6786c5ee485bf079dc",
        ),
    ];
    for (credentials, names, signature) in cases {
        let signed = sign(request, &credentials, AT);
        assert_eq!(signed.date, "20261115T203000Z");
        assert_eq!(
            signed.authorization,
            format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/eu-central-1/dynamodb/aws4_request, \
                 SignedHeaders={names}, Signature={signature}"
            )
        );
    }
}

/// The examples of the documentation of AWS.
#[test]
fn signing_keys_match_the_published_examples() {
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    for (day, key) in [
        ("20120215", "f4780e2d9f65fa895f9c67b32ce1baf0b0d8a43505a000a1a9e090d414db404d"),
        ("20150830", "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"),
    ] {
        assert_eq!(hex(&signing_key(secret, day, "us-east-1", "iam")), key);
    }
}
