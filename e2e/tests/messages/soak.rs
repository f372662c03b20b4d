//! Asks krew for every command of krew that a text names.

use emco_e2e::programs::{Program, Programs};

use super::text::{all, words};
use super::{OF_KREW, kubectl, verbs};

#[tokio::test]
async fn every_command_of_krew_that_a_page_names_is_a_real_one() {
    let programs = Programs::get(&[Program::Kubectl, Program::Krew]).await.unwrap();
    let (krew, verbs) =
        (programs.path(Program::Krew).unwrap(), verbs(programs.path(Program::Kubectl).unwrap()).unwrap());
    let (verb, flags) = OF_KREW;
    let mut known = vec!["krew".to_owned(), verb.to_owned()];
    known.extend(flags.map(|flag| format!("{flag}=x")));
    let named = all(&verbs).into_keys().map(|command| words(&command));
    let named = named.filter(|words| words.get(1).is_some_and(|word| word == "krew"));
    let commands: Vec<Vec<String>> = named.map(|words| words[1..].to_vec()).chain([known]).collect();
    assert!(commands.len() > 1, "no text names a command of krew");
    for command in commands {
        let refused = kubectl(krew, "kubectl krew", &command).unwrap();
        assert_eq!(refused, None, "{command:?}");
    }
}
