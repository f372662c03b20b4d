//! Our patches of manifests give what `kubectl patch --local` gives. `make soak STEP=patches` compares more of them.

use emco_e2e::patches;

const PATCHES: usize = 150;

#[tokio::test(flavor = "multi_thread")]
async fn random_patches_of_samples_give_the_same_as_kubectl() {
    let samples = patches::samples().unwrap();
    let objects = patches::comparable(samples.clone());
    assert_eq!(objects, samples, "every sample is compared");
    let seed = std::env::var("EMCO_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_127);
    eprintln!("EMCO_TEST_SEED={seed}");
    let compared = patches::compare(&objects, seed, PATCHES).await.unwrap();
    compared.agree().unwrap();
}
