//! Functions that a macro writes.
#![deny(warnings)]

macro_rules! protected {
    ($name:ident, $argument:ident: $ty:ty, $scope:literal) => {
        #[hapax::idempotent(scope = $scope)]
        async fn $name($argument: $ty, amount: &str) -> Result<$ty, String> {
            let _ = amount;
            Ok($argument)
        }
    };
}

protected!(charge, id: u32, "charge");
protected!(refund, id: String, "refund");

fn main() {
    drop((charge(1, ""), refund(String::new(), "")));
    drop((charge::unprotected(1, ""), refund::unprotected(String::new(), "")));
}
