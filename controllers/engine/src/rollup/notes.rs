//! Finds what is worth reporting although nothing failed: changes by others, and fields that clusters do not know.
//! Neither makes a cluster less ready.

use emco_crds::deployment_intent_group::status::DriftCounts;
use emco_crds::sync_shard::status::LeftOut;

use super::clusters;
use super::facts::ClusterFact;
use crate::conditions::truncate;
use crate::drift::DELETED;
use crate::shard::MOST_RESTORED;
use crate::text::counted;

/// Longest example in a sentence, in bytes.
const LONGEST: usize = 256;

/// What the clusters have to say besides how they are. The same clusters give the same words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Objects that differ from what was applied: a sentence.
    pub drift: Option<String>,
    /// Objects that others deleted, replaced or changed, and that were put right: the first of them, and how many more times.
    pub corrected: Option<String>,
    /// Fields that were left out: a sentence.
    pub left_out: Option<String>,
    /// The field that the sentence names, which stays while clusters come and go.
    pub left_out_example: Option<String>,
    /// Fields that the clusters' admission rewrote: a sentence.
    pub rewritten: Option<String>,
    /// The field that this one names.
    pub rewritten_example: Option<String>,
}

impl Notes {
    /// What there is, in order.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        // What was put right is no news of the present: it is told by an Event, and counted.
        let Self { drift, corrected: _, left_out, left_out_example: _, rewritten, rewritten_example: _ } =
            self;
        [drift, left_out, rewritten].into_iter().flatten().map(String::as_str)
    }
}

/// Sums and sentences over all clusters that are to have something.
pub fn of(facts: &[ClusterFact<'_>]) -> (Option<DriftCounts>, Notes) {
    let wanted = || facts.iter().filter(|fact| fact.wanted.is_some());
    let mut sum = DriftCounts::default();
    let mut reported = 0;
    let mut drifted = 0_usize;
    let mut example = None;
    let mut restored = Vec::new();
    for (fact, drift) in wanted().filter_map(|fact| Some((fact, fact.status.as_ref()?.drift.as_ref()?))) {
        sum.corrected += drift.corrected;
        reported += drift.reported;
        drifted += usize::from(drift.reported > 0);
        sum.last = sum.last.max(drift.last.clone());
        let room = MOST_RESTORED - restored.len();
        restored
            .extend(drift.restored.iter().take(room).map(|object| format!("{object} on {}", fact.cluster)));
        example = example.or_else(|| drift.objects.first().map(|object| (&fact.cluster, object)));
    }
    sum.reported = (reported > 0).then_some(reported);
    let drift = (reported > 0).then(|| {
        let first = example.map(|(cluster, object)| {
            let by = match object.by.as_str() {
                "" => String::new(),
                DELETED => " (it is deleted)".to_owned(),
                by => format!(" (written by {by})"),
            };
            truncate(&format!(": {} on {cluster}{by}", object.resource), LONGEST)
        });
        let objects = counted(usize::try_from(reported).unwrap_or_default(), "object");
        let first = first.unwrap_or_default();
        format!("others changed {objects} on {}{first}", clusters(drifted))
    });
    let (left_out, left_out_example) = fields(
        "fields unknown to clusters are left out, as by Helm",
        wanted().filter_map(|fact| fact.status.as_ref()?.left_out.as_ref()),
    );
    let (rewritten, rewritten_example) = fields(
        "fields are rewritten by the clusters' own admission, which counts as wanted",
        wanted().filter_map(|fact| fact.status.as_ref()?.rewritten.as_ref()),
    );
    let any = sum.corrected > 0 || reported > 0;
    let corrected = corrected(&restored, sum.corrected);
    let notes = Notes { drift, corrected, left_out, left_out_example, rewritten, rewritten_example };
    (any.then_some(sum), notes)
}

/// `ConfigMap/shop/web on acme/berlin, and 2 more`; `None` where no row names one, as those that an earlier version wrote.
fn corrected(named: &[String], corrected: i64) -> Option<String> {
    if named.is_empty() {
        return None;
    }
    let more = corrected - i64::try_from(named.len()).unwrap_or_default();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("{}{more}", truncate(&named.join(", "), LONGEST)))
}

/// A sentence about fields that clusters name, and the field it names itself: the smallest, so that the order of clusters
/// does not matter.
fn fields<'a>(what: &str, named: impl Iterator<Item = &'a LeftOut>) -> (Option<String>, Option<String>) {
    let (mut fields, mut on) = (0, 0);
    let mut field: Option<&String> = None;
    for one in named {
        on += 1;
        fields = one.fields.max(fields);
        field = one.first.iter().chain(field).min();
    }
    let example = field.map(|field| truncate(field, LONGEST));
    let first = example.as_ref().map(|field| format!(", first {field}")).unwrap_or_default();
    ((on > 0).then(|| format!("{what}: {fields} on {}{first}", clusters(on))), example)
}
