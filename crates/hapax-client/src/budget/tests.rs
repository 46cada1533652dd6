use super::*;

#[test]
fn c_03_calls_earn_retries_up_to_the_maximum() {
    let budget = RetryBudget::new(2, 50);
    assert!(budget.withdraw() && budget.withdraw());
    assert!(!budget.withdraw());

    budget.deposit();
    assert!(!budget.withdraw(), "half a retry is none");
    budget.deposit();
    assert!(budget.withdraw());

    (0..100).for_each(|_| budget.deposit());
    assert!(budget.withdraw() && budget.withdraw());
    assert!(!budget.withdraw());
}

#[test]
fn c_03_clones_share_one_budget() {
    let budget = RetryBudget::new(1, 0);
    assert!(budget.clone().withdraw());
    assert!(!budget.withdraw());
}
