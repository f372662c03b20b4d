use emco_crds::deployment_intent_group::status::PendingRequires;
use emco_engine::changes::{Details, DetailsApp, DetailsVariant, Difference, Differences, ObjectRow};

use super::*;
use crate::cli::plan::Refusal;
use crate::cli::plan::read::{Found, joined};

fn row(what: What, object: &str) -> ObjectRow {
    ObjectRow { what, object: object.to_owned(), by: Vec::new() }
}

fn details() -> Details {
    let set = |name: &str| Some(name.to_owned());
    let clusters = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let changes = DetailsVariant {
        before: set("one"),
        now: set("two"),
        total: 7,
        clusters: clusters(&["acme/a", "acme/b", "acme/c", "acme/d", "acme/e", "acme/f"]),
        added: 1,
        changed: 3,
        removed: 1,
        objects: vec![
            row(What::Changed, "ConfigMap/shop/web"),
            row(What::Added, "Service/shop/web"),
            row(What::Removed, "ConfigMap/shop/old"),
        ],
        hooks: vec!["pre-upgrade batch/Job/shop/migrate".to_owned()],
        recreated: Vec::new(),
        more_recreated: 0,
        dry_run: Some(DryRun {
            cluster: Some("acme/b".to_owned()),
            asked: 4,
            refused: vec![RefusedRow {
                object: "Service/shop/web".to_owned(),
                reason: "Invalid".to_owned(),
                message: "spec.ports: Required value".to_owned(),
            }],
            more: 1,
            unanswered: 2,
            left_out: 5,
            ..DryRun::default()
        }),
    };
    let leaves = DetailsVariant {
        before: set("one"),
        total: 1,
        clusters: clusters(&["acme/x"]),
        removed: 1,
        objects: vec![row(What::Removed, "ConfigMap/shop/web")],
        ..DetailsVariant::default()
    };
    let app = |app: &str, clusters, variants| DetailsApp {
        app: app.to_owned(),
        clusters,
        variants,
        ..DetailsApp::default()
    };
    Details {
        format: 1,
        apps: vec![app("web", 7, vec![changes, leaves.clone()]), app("db", 0, vec![leaves])],
        ..Details::default()
    }
}

fn differences() -> Differences {
    let text = "@@ -1,2 +1,2 @@\n data:\n-  key: one\n+  key: two\n";
    let object = |name: &str, text: &str| Difference {
        before: Some("one".to_owned()),
        now: Some("two".to_owned()),
        object: name.to_owned(),
        text: text.to_owned(),
    };
    let objects = vec![
        object("ConfigMap/shop/web", text),
        object("Service/shop/web", "@@ -0,0 +1 @@\n+kind: Service\n"),
    ];
    Differences { format: 1, digest: String::new(), objects, left_out: 2 }
}

fn answer(plan: Option<Plan>) -> Answer {
    let verdict = if plan.is_some() { Verdict::Changes } else { Verdict::Nothing };
    Answer { deployment: "shop/till".to_owned(), verdict, runs: Some(3), refusal: None, unknown: None, plan }
}

fn plan() -> Plan {
    Plan {
        revision: 4,
        digest: format!("sha256:{}", "0123456789abcdef".repeat(4)),
        requires: PendingRequires::Approval,
        waits: "approve digest 0123456789ab: kubectl emco approve dig/till -n shop".to_owned(),
        summary: String::new(),
        clusters: ChangeCounts { added: 0, changed: 7, removed: 2 },
        resources: ChangeCounts { added: 7, changed: 21, removed: 9 },
        gains: Vec::new(),
        brief: Vec::new(),
        apps: Vec::new(),
        waves: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn waves_are_named_with_what_they_wait_for() {
    let wave =
        |name: &str, clusters, soak, approval| Outline { name: name.to_owned(), clusters, soak, approval };
    let waves = vec![
        wave("canary", 1, 600, WaveApproval::After),
        wave("half", 20, 0, WaveApproval::Before),
        wave("the rest", 21, 0, WaveApproval::None),
    ];
    let said = "waves: canary on 1 cluster, watched for 600 s, then an approval; half on 20 clusters, after an approval; the rest on 21 clusters\n";
    let text = text(&answer(Some(Plan { waves, ..plan() })));
    assert!(text.contains(said), "{text}");
}

#[test]
fn rights_that_are_gained_are_in_a_line() {
    let gains = vec!["create NetworkPolicies".to_owned(), "get pods".to_owned()];
    let text = text(&answer(Some(Plan { gains, ..plan() })));
    assert!(text.contains("\ngains: create NetworkPolicies, get pods\n"), "{text}");
}

#[test]
fn a_plan_is_a_tree_with_the_lines_that_differ() {
    let (apps, notes) = joined(Found::of(details()), Some(Ok(differences())));
    insta::assert_snapshot!(text(&answer(Some(Plan { apps, notes, ..plan() }))));
}

#[test]
fn whoever_may_not_read_more_sees_counts_and_first_names() {
    let (apps, notes) =
        (Vec::new(), vec!["every object is named in ConfigMap shop/x, which you may not get".to_owned()]);
    let brief = vec![PendingApp {
        name: "web".to_owned(),
        clusters: ChangeCounts { added: 0, changed: 7, removed: 1 },
        resources: ChangeCounts { added: 7, changed: 21, removed: 8 },
        first: vec!["ConfigMap/shop/web".to_owned(), "Service/shop/web".to_owned()],
        lost: vec!["acme/x".to_owned()],
        ..PendingApp::default()
    }];
    insta::assert_snapshot!(text(&answer(Some(Plan { brief, apps, notes, ..plan() }))));
}

#[test]
fn objects_that_would_be_made_again_are_named_with_what_is_lost() {
    let mut details = details();
    let row = RecreatedRow { object: "Service/shop/web".to_owned(), lost: "its address".to_owned() };
    details.apps[0].variants[0].dry_run = Some(DryRun {
        cluster: Some("acme/b".to_owned()),
        asked: 5,
        recreated: vec![row],
        more_recreated: 1,
        ..DryRun::default()
    });
    let (apps, notes) = joined(Found::of(details), None);
    let said = text(&answer(Some(Plan { apps, notes, ..plan() })));
    for line in [
        "acme/b would accept 3 objects",
        "acme/b cannot change Service/shop/web: it would be deleted and made again: its address",
        "acme/b cannot change 1 more that would be deleted and made again",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let recreated = vec!["acme/b: Service/shop/web: its address".to_owned()];
    let brief = vec![PendingApp { name: "web".to_owned(), recreated, ..PendingApp::default() }];
    let said = text(&answer(Some(Plan { brief, ..plan() })));
    assert!(said.contains("would be deleted and made again: acme/b: Service/shop/web"), "{said}");
}

#[test]
fn objects_made_again_are_foretold_until_a_cluster_is_asked() {
    let mut details = details();
    let variant = &mut details.apps[0].variants[0];
    let row = RecreatedRow { object: "apps/Deployment/shop/web".to_owned(), lost: "its Pods end".to_owned() };
    (variant.recreated, variant.more_recreated) = (vec![row], 2);
    let said = |details: Details| {
        let (apps, notes) = joined(Found::of(details), None);
        text(&answer(Some(Plan { apps, notes, ..plan() })))
    };
    let lines = [
        "apps/Deployment/shop/web cannot be changed: it would be deleted and made again: its Pods end",
        "2 more cannot be changed, and would be deleted and made again",
    ];
    assert!(!said(details.clone()).contains(lines[0]), "the cluster knows better");
    details.apps[0].variants[0].dry_run = None;
    let said = said(details);
    assert!(lines.iter().all(|line| said.contains(line)), "{said}");
}

#[test]
fn nothing_and_a_refusal_are_said_in_a_line() {
    assert_eq!(text(&answer(None)), "shop/till: revision 3 runs, and nothing would change\n");
    let refusal = Refusal {
        condition: "Placed".to_owned(),
        reason: "NoClusterMatches".to_owned(),
        message: "app web matches no cluster".to_owned(),
    };
    let refused = Answer { verdict: Verdict::Refused, refusal: Some(refusal), ..answer(None) };
    assert_eq!(
        text(&refused),
        "shop/till: revision 3 runs\nrefused: Placed=False NoClusterMatches: app web matches no cluster\n"
    );
}

#[test]
fn groups_of_clusters_that_were_not_written_down_are_counted() {
    let mut details = details();
    details.apps[0].left_out = 12;
    let (apps, notes) = joined(Found::of(details), None);
    let text = text(&answer(Some(Plan { apps, notes, ..plan() })));
    assert!(text.contains("│  └─ ... 12 more groups of clusters\n"), "{text}");
}
