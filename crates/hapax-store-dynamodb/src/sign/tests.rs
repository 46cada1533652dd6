use hapax_core::Timestamp;

use super::{Request, civil, compact, sign};
use crate::credentials::Credentials;

const AT: Timestamp = Timestamp::from_millis(1_794_774_600_000);

/// What botocore 1.44 signs the same requests with.
#[test]
fn signatures_are_those_of_another_implementation() {
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

#[test]
fn days_have_dates() {
    let cases = [
        (0, (1970, 1, 1)),
        (59, (1970, 3, 1)),
        (11_016, (2000, 2, 29)),
        (11_017, (2000, 3, 1)),
        (47_540, (2100, 2, 28)),
        (47_541, (2100, 3, 1)),
    ];
    for (days, date) in cases {
        assert_eq!(civil(days), date, "day {days}");
    }
    assert_eq!(compact(Timestamp::from_millis(951_868_799_999)), "20000229T235959Z");
}
