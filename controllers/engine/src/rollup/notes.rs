//! Finds what is worth reporting although nothing failed: changes by others, and fields that clusters do not know.
//! Neither makes a cluster less ready.

use emco_crds::Time;
use emco_crds::deployment_intent_group::status::DriftCounts;
use emco_crds::sync_shard::status::{LeftOut, RowDrifted};

use super::clusters;
use super::facts::ClusterFact;
use crate::conditions::truncate;
use crate::drift::DELETED;
use crate::identity::ClusterId;
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

/// What is told of some clusters that are to have something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    corrected: i64,
    reported: i64,
    /// When others last changed something.
    last: Option<Time>,
    /// Clusters where something differs.
    drifted: usize,
    /// The first of them that names an object.
    example: Option<(ClusterId, RowDrifted)>,
    /// The first objects that were put right, in the order of their clusters.
    restored: Vec<(ClusterId, String)>,
    left_out: Fields,
    rewritten: Fields,
}

/// Fields that clusters name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fields {
    /// The most on one cluster.
    most: i64,
    /// Clusters that name some.
    on: usize,
    /// The smallest of them: the order of clusters does not matter.
    first: Option<String>,
}

impl Fields {
    fn and(&mut self, other: &Self) {
        let Self { most, on, first } = other;
        self.most = self.most.max(*most);
        self.on += on;
        self.first = self.first.iter().chain(first).min().cloned();
    }

    fn of(left_out: &LeftOut) -> Self {
        Self { most: left_out.fields, on: 1, first: left_out.first.iter().min().cloned() }
    }

    /// A sentence, and the field that it names.
    fn said(&self, what: &str) -> (Option<String>, Option<String>) {
        let example = self.first.as_ref().map(|field| truncate(field, LONGEST));
        let first = example.as_ref().map(|field| format!(", first {field}")).unwrap_or_default();
        let said = (self.on > 0).then(|| format!("{what}: {} on {}{first}", self.most, clusters(self.on)));
        (said, example)
    }
}

impl Told {
    /// Of these clusters.
    pub fn of(facts: &[ClusterFact<'_>]) -> Self {
        let mut all = Self::default();
        for fact in facts.iter().filter(|fact| fact.wanted.is_some()) {
            all.and(&Self::of_cluster(fact));
        }
        all
    }

    fn of_cluster(fact: &ClusterFact<'_>) -> Self {
        let mut told = Self::default();
        let Some(status) = &fact.status else { return told };
        if let Some(drift) = &status.drift {
            told.corrected = drift.corrected;
            told.reported = drift.reported;
            told.last.clone_from(&drift.last);
            told.drifted = usize::from(drift.reported > 0);
            told.example = drift.objects.first().map(|object| (fact.cluster.clone(), object.clone()));
            let restored = drift.restored.iter().take(MOST_RESTORED);
            told.restored = restored.map(|object| (fact.cluster.clone(), object.clone())).collect();
        }
        told.left_out = status.left_out.as_ref().map(Fields::of).unwrap_or_default();
        told.rewritten = status.rewritten.as_ref().map(Fields::of).unwrap_or_default();
        told
    }

    /// With what is told of other clusters.
    pub fn and(&mut self, other: &Self) {
        let Self { corrected, reported, last, drifted, example, restored, left_out, rewritten } = other;
        self.corrected += corrected;
        self.reported += reported;
        self.last = self.last.take().max(last.clone());
        self.drifted += drifted;
        if let Some(example) = example
            && self.example.as_ref().is_none_or(|(first, _)| example.0 < *first)
        {
            self.example = Some(example.clone());
        }
        self.restored.extend(restored.iter().cloned());
        // Stable: objects of one cluster stay in their order.
        self.restored.sort_by(|a, b| a.0.cmp(&b.0));
        self.restored.truncate(MOST_RESTORED);
        self.left_out.and(left_out);
        self.rewritten.and(rewritten);
    }

    /// Sums and sentences.
    pub fn said(&self) -> (Option<DriftCounts>, Notes) {
        let Self { corrected, reported, last, drifted, example, restored, left_out, rewritten } = self;
        let any = *corrected > 0 || *reported > 0;
        let counts = DriftCounts {
            corrected: *corrected,
            reported: (*reported > 0).then_some(*reported),
            last: last.clone(),
        };
        let drift = (*reported > 0).then(|| {
            let first = example.as_ref().map(|(cluster, object)| {
                let by = match object.by.as_str() {
                    "" => String::new(),
                    DELETED => " (it is deleted)".to_owned(),
                    by => format!(" (written by {by})"),
                };
                truncate(&format!(": {} on {cluster}{by}", object.resource), LONGEST)
            });
            let objects = counted(usize::try_from(*reported).unwrap_or_default(), "object");
            let first = first.unwrap_or_default();
            format!("others changed {objects} on {}{first}", clusters(*drifted))
        });
        let (left_out, left_out_example) =
            left_out.said("fields unknown to clusters are left out, as by Helm");
        let (rewritten, rewritten_example) =
            rewritten.said("fields are rewritten by the clusters' own admission, which counts as wanted");
        let named: Vec<String> =
            restored.iter().map(|(cluster, object)| format!("{object} on {cluster}")).collect();
        let corrected = put_right(&named, *corrected);
        let notes = Notes { drift, corrected, left_out, left_out_example, rewritten, rewritten_example };
        (any.then_some(counts), notes)
    }
}

/// `ConfigMap/shop/web on acme/berlin, and 2 more`; `None` where no row names one, as those that an earlier version wrote.
fn put_right(named: &[String], corrected: i64) -> Option<String> {
    if named.is_empty() {
        return None;
    }
    let more = corrected - i64::try_from(named.len()).unwrap_or_default();
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("{}{more}", truncate(&named.join(", "), LONGEST)))
}
