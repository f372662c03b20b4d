use super::*;

#[test]
fn clusters_whose_apps_wait_for_others_say_so_and_have_not_failed() {
    let mut fleet = Fleet::new(2);
    fleet.retarget(wanted(2, "s2"));
    fleet.change(1, |row| {
        row.state = State::Updating;
        row.error = Some(RowError {
            app: Some("web".to_owned()),
            reason: "WaitingForDependency".to_owned(),
            message: "waits until this revision of app db is Ready on acme/edge-01".to_owned(),
            ..RowError::default()
        });
    });
    let rollup = fleet.dig();
    assert_eq!(
        text(&rollup.deployed),
        "False WaitingForDependency: 0 of 2 clusters have revision 3; acme/edge-01 (web): WaitingForDependency: waits until this \
         revision of app db is Ready on acme/edge-01"
    );
    assert_eq!(rollup.ready.reason, "WaitingForDependency");
    assert_eq!((rollup.clusters.progressing, rollup.clusters.failed), (2, 0));
    fleet.fail(2, "Invalid", "it is wrong", 5);
    assert_eq!(fleet.dig().deployed.reason, "Invalid", "what failed counts more");
}
