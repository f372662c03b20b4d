//! Reads what a page is asked to show from its address, or says what is wrong with it.

use std::collections::BTreeMap;

use clap::ValueEnum as _;

use crate::cli::args::is_label;
use crate::cli::args::status::Verdict;

/// Rows of a page.
pub const ROWS: usize = 100;
/// Longest text that is looked for.
const LONGEST: usize = 253;

/// Parameters of every page besides its filters.
const OF_ALL: [&str; 4] = ["page", "live", "plan", "said"];

/// Filters of a page by name, checked. An empty one is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    filters: BTreeMap<String, String>,
    /// From 1.
    pub page: usize,
    /// Digest of the part that the browser shows: it asks for the stream of later ones.
    pub live: Option<String>,
    /// Digest of the plan that the browser shows; empty where it shows none.
    pub plan: Option<String>,
    /// Number of what was said after a form was sent.
    pub said: Option<u64>,
}

/// A page with filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Deployments,
    Clusters,
    /// Apps on clusters, of one deployment.
    Places,
    /// A page without any.
    Nothing,
}

impl List {
    /// The names of its filters.
    const fn filters(self) -> &'static [&'static str] {
        match self {
            Self::Deployments => &["name", "namespace", "state", "app", "cluster"],
            Self::Clusters => &["name", "provider", "ready"],
            Self::Places => &["app", "cluster", "state"],
            Self::Nothing => &[],
        }
    }

    /// The name of its rows.
    pub const fn rows(self) -> &'static str {
        match self {
            Self::Deployments => "deployments",
            Self::Clusters => "clusters",
            Self::Places => "apps on clusters",
            Self::Nothing => "reasons",
        }
    }

    /// The words that a filter takes; none: any text.
    pub fn words(self, filter: &str) -> Vec<&'static str> {
        match (self, filter) {
            (Self::Deployments, "state") => vec!["Ready", "NotReady", "Unknown", "Waiting"],
            (Self::Clusters, "ready") => vec!["True", "False", "Unknown"],
            (Self::Places, "state") => Verdict::value_variants().iter().map(|one| one.as_str()).collect(),
            _ => Vec::new(),
        }
    }
}

/// Something that is asked for and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub said: String,
    /// The last page, where one beyond it is asked for.
    pub last: Option<usize>,
}

impl Missing {
    /// One that no other page helps against.
    pub const fn of(said: String) -> Self {
        Self { said, last: None }
    }
}

impl Ask {
    /// Reads the part of an address after its question mark.
    pub fn read(list: List, query: &str) -> Result<Self, String> {
        let mut ask = Self { page: 1, ..Self::default() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            if !list.filters().contains(&name.as_str()) && !OF_ALL.contains(&name.as_str()) {
                return Err(unknown(list, &name));
            }
            // A page without a plan says so: one that comes later was not looked at there.
            if value.is_empty() && name != "plan" {
                continue;
            }
            match name.as_str() {
                "page" => ask.page = page(&value)?,
                "live" => ask.live = Some(value),
                "plan" => ask.plan = Some(value),
                "said" => ask.said = value.parse().ok(),
                _ => {
                    judged(list, &name, &value)?;
                    ask.filters.insert(name, value);
                }
            }
        }
        Ok(ask)
    }

    /// Value of a filter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.filters.get(name).map(String::as_str)
    }

    /// True where no filter is set.
    pub fn is_all(&self) -> bool {
        self.filters.is_empty()
    }

    /// The address of another page of the same rows, beginning with its question mark.
    pub fn at(&self, page: usize) -> String {
        let mut query: Vec<String> =
            self.filters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if page > 1 || query.is_empty() {
            query.push(format!("page={page}"));
        }
        format!("?{}", query.join("&"))
    }

    /// The rows of the page, or that there is no such page.
    pub fn of<'a, T>(&self, list: List, all: &'a [T]) -> Result<&'a [T], Missing> {
        let pages = all.len().div_ceil(ROWS).max(1);
        let start = (self.page - 1).saturating_mul(ROWS);
        if self.page > pages {
            let there =
                if pages == 1 { "there is 1 page".to_owned() } else { format!("there are {pages} pages") };
            let said = format!("there is no page {} of {}: {there}", self.page, list.rows());
            return Err(Missing { said, last: Some(pages) });
        }
        Ok(all.get(start..all.len().min(start + ROWS)).unwrap_or_default())
    }
}

fn unknown(list: List, name: &str) -> String {
    let mut there = list.filters().to_vec();
    if there.is_empty() {
        return format!("there is no filter {name}: this page has none");
    }
    there.push("page");
    let last = there.pop().unwrap_or_default();
    format!("there is no filter {name}: there are {} and {last}", there.join(", "))
}

fn page(value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("page={value} is no page: write a number from 1"))
}

fn judged(list: List, name: &str, value: &str) -> Result<(), String> {
    if value.len() > LONGEST {
        return Err(format!("{name} is longer than {LONGEST} characters: nothing has such a name"));
    }
    let words = list.words(name);
    if let Some((last, first)) = words.split_last()
        && !words.contains(&value)
    {
        return Err(format!("{name}={value} is no state: write {} or {last}", first.join(", ")));
    }
    let is_cluster = |(provider, name): (&str, &str)| is_label(provider) && is_label(name);
    if name == "cluster" && !value.split_once('/').is_some_and(is_cluster) {
        return Err(format!("cluster={value} is no cluster: write PROVIDER/CLUSTER, such as acme/berlin"));
    }
    Ok(())
}

/// A text as forms write it, read.
pub fn decoded(text: &str) -> Result<String, String> {
    let wrong = || "the address has a character that is not written as browsers write it".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
                bytes.push(u8::try_from(high * 16 + low).map_err(|_| wrong())?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// A text as a part of an address.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no(list: List, query: &str) -> String {
        Ask::read(list, query).unwrap_err()
    }

    #[test]
    fn a_bad_filter_is_said_with_what_to_write() {
        assert_eq!(
            no(List::Deployments, "foo=1"),
            "there is no filter foo: there are name, namespace, state, app, cluster and page"
        );
        assert_eq!(
            no(List::Deployments, "state=Blue"),
            "state=Blue is no state: write Ready, NotReady, Unknown or Waiting"
        );
        assert_eq!(
            no(List::Places, "cluster=x"),
            "cluster=x is no cluster: write PROVIDER/CLUSTER, such as acme/berlin"
        );
        for bad in ["0", "-1", "x", "1.5", "99999999999999999999999"] {
            let said = no(List::Clusters, &format!("page={bad}"));
            assert_eq!(said, format!("page={bad} is no page: write a number from 1"));
        }
        for bad in ["name=%zz", "name=%f", "name=%ff", "%=1"] {
            assert!(no(List::Clusters, bad).starts_with("the address has a character"), "{bad}");
        }
        assert!(
            no(List::Clusters, &format!("name={}", "a".repeat(254))).starts_with("name is longer than 253")
        );
    }

    #[test]
    fn empty_filters_are_none_and_others_stay_in_the_address() {
        let ask = Ask::read(List::Deployments, "name=a%26b+c&state=&app=&page=2").unwrap();
        assert_eq!((ask.get("name"), ask.get("state"), ask.page), (Some("a&b c"), None, 2));
        assert_eq!(ask.at(3), "?name=a%26b%20c&page=3");
        assert_eq!(Ask::read(List::Deployments, &ask.at(3)[1..]).unwrap().get("name"), Some("a&b c"));
        assert_eq!(Ask::default().at(1), "?page=1");
        let streams = Ask::read(List::Places, "live=x&plan=").unwrap();
        assert_eq!((streams.live.as_deref(), streams.plan.as_deref()), (Some("x"), Some("")));
    }

    #[test]
    fn a_page_beyond_the_end_is_said_with_how_many_there_are() {
        let rows: Vec<usize> = (0..250).collect();
        let at = |page| Ask { page, ..Ask::default() };
        assert_eq!(at(3).of(List::Deployments, &rows).unwrap(), &rows[200..]);
        let said = at(4).of(List::Deployments, &rows).unwrap_err();
        assert_eq!(said.said, "there is no page 4 of deployments: there are 3 pages");
        assert_eq!(said.last, Some(3));
        let said = at(usize::MAX).of::<usize>(List::Places, &[]).unwrap_err();
        assert!(said.said.ends_with("of apps on clusters: there is 1 page"), "{said:?}");
    }
}
