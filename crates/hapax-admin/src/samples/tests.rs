use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;

const TEXT: &str = r#"# HELP hapax_requests_total requests
# TYPE hapax_requests_total counter
hapax_requests_total{surface="http",route="/a \"b\" outcome=\"x\"",outcome="ran"} 3
hapax_requests_total{surface="http",route="/c",outcome="ran"} 4
hapax_requests_total{surface="http",route="/c",outcome="replayed"} 5
hapax_claim_seconds_bucket{le="0.001"} 90
hapax_claim_seconds_bucket{le="0.01"} 100
hapax_claim_seconds_bucket{le="+Inf"} 100
hapax_claim_seconds_sum 0.5
hapax_claim_seconds_count 100
hapax_request_seconds_bucket{outcome="ran",le="0.01"} 7
hapax_request_seconds_bucket{outcome="passed",le="0.01"} 11
hapax_request_seconds_count{outcome="ran"} 7
hapax_request_seconds_count{outcome="passed"} 11
hapax_in_progress 2
hapax_uncertain 7
something_else{le="1"} 9
not a number x
"#;

#[test]
fn known_metrics_are_found_among_others() {
    let sample = parse::sample(TEXT);
    assert_eq!(sample.requests.get("ran"), Some(&7.0));
    assert_eq!(sample.requests.get("replayed"), Some(&5.0));
    assert_eq!(sample.requests.get("passed"), Some(&11.0), "counted by their durations only");
    assert_eq!((sample.answered.count, &sample.answered.buckets[..]), (18.0, &[(0.01, 18.0)][..]));
    assert_eq!((sample.in_progress, sample.uncertain), (2.0, 7.0));
    assert_eq!(sample.claim.count, 100.0);
    assert_eq!(sample.claim.buckets.len(), 3);
}

#[test]
fn quantiles_are_estimated_within_their_bucket() {
    let claim = parse::sample(TEXT).claim;
    assert_eq!(claim.quantile(0.45), Some(0.0005));
    let p99 = claim.quantile(0.99).unwrap();
    assert!((0.001..0.01).contains(&p99), "{p99}");
    let beyond = Histogram { count: 10.0, sum: 50.0, buckets: vec![(1.0, 0.0), (f64::INFINITY, 10.0)] };
    assert_eq!(beyond.quantile(0.5), Some(1.0), "as much as is known");
    let plain = Histogram { count: 10.0, sum: 50.0, buckets: Vec::new() };
    assert_eq!(plain.quantile(0.5), Some(5.0), "the mean where there are no buckets");
    assert_eq!(Histogram::default().quantile(0.5), None);
}

#[test]
fn a_step_is_the_difference_of_two_samples() {
    let samples = Samples::default();
    assert!(samples.steps().is_empty());
    samples.push(parse::sample(TEXT));
    let later = parse::sample(&TEXT.replace("outcome=\"replayed\"} 5", "outcome=\"replayed\"} 15"));
    samples.push(Sample { at: EVERY, ..later });
    let steps = samples.steps();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].rates.get("replayed"), Some(&5.0), "ten in two seconds");
    assert_eq!(steps[0].rates.get("ran"), Some(&0.0));
    assert_eq!(steps[0].claim_p99, None, "no claim since");
}

#[test]
fn the_ring_buffer_is_bounded() {
    let samples = Samples::default();
    for _ in 0..SAMPLES_MAX + 10 {
        samples.push(Sample::default());
    }
    assert_eq!(samples.steps().len(), Samples::steps_max());
}

#[test]
fn the_output_of_the_recorder_is_parsed() {
    let recorder = PrometheusBuilder::new().set_buckets(&[0.01, 0.1]).unwrap().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        metrics::counter!(hapax::observe::REQUESTS, "surface" => "http", "route" => "/\"a", "outcome" => "ran")
            .increment(2);
        metrics::histogram!(hapax::observe::CLAIM_SECONDS).record(0.05);
        metrics::gauge!(hapax::observe::IN_PROGRESS).set(4.0);
    });
    let samples = Samples::default();
    samples.take(&recorder.handle(), EVERY);
    let sample = samples.ring.read().back().cloned().unwrap_or_default();
    assert_eq!(sample.requests.get("ran"), Some(&2.0));
    assert_eq!(sample.claim.buckets, [(0.01, 0.0), (0.1, 1.0), (f64::INFINITY, 1.0)]);
    assert_eq!(sample.in_progress, 4.0);
}

#[test]
fn a_late_sample_does_not_inflate_the_rates() {
    let total = |at, ran| Sample { at, requests: [("ran".to_owned(), ran)].into(), ..Sample::default() };
    let step = Step::between(&total(EVERY, 0.0), &total(EVERY * 10, 90.0));
    assert_eq!(step.rates.get("ran"), Some(&5.0));
}
