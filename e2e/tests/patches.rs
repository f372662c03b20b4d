//! Our patches of manifests give what Kubernetes' own library and `kubectl patch --local` give, by the merge keys that its types have. The
//! step `patches` of `make soak` compares more of them, `make conformance` those of objects that charts render.

use emco_e2e::patches::{self, Amounts};

const AMOUNTS: Amounts = Amounts { strategic: 5000, through_kubectl: 50, others: 30 };
/// Fewer kinds than these are not all that Kubernetes has.
const LEAST_KINDS: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn random_patches_of_samples_give_the_same_as_kubernetes() {
    let samples = patches::samples().unwrap();
    let objects = patches::comparable(samples.clone());
    assert_eq!(objects, samples, "every sample is compared");
    let seed = std::env::var("EMCO_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_127);
    eprintln!("EMCO_TEST_SEED={seed}");
    let compared = Box::pin(patches::compare(&objects, seed, AMOUNTS)).await.unwrap();
    compared.agree().unwrap();
    let patches = AMOUNTS.strategic + AMOUNTS.through_kubectl + 2 * AMOUNTS.others;
    assert_eq!(compared.applied + compared.refused + compared.unknown, patches, "{compared}");
}

#[tokio::test]
async fn merge_keys_are_those_that_the_types_of_kubernetes_have() {
    let compared = patches::merge_keys().await.unwrap();
    let differences = compared.differences.join("\n");
    assert!(differences.is_empty(), "controllers/engine/src/edits/keys:\n{differences}");
    // Each kind has the finalizers and owners of its metadata.
    assert!(compared.kinds > LEAST_KINDS && compared.fields > 2 * compared.kinds, "{compared:?}");
}
