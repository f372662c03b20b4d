//! Resolves references against a base, as Go's `ResolveReference`.
use super::Url;

impl Url {
    pub fn of(text: &str) -> Option<Self> {
        Self::parse(text.as_bytes()).ok()
    }

    /// As it is printed.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.print()).into_owned()
    }

    pub fn has_scheme(&self) -> bool {
        !self.scheme.is_empty()
    }

    /// The path, unescaped.
    pub fn path_text(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// The fragment, unescaped.
    pub fn fragment_text(&self) -> String {
        String::from_utf8_lossy(&self.fragment).into_owned()
    }

    /// It says where a document is: with a host, or as a file with its whole path.
    pub fn is_whole(&self) -> bool {
        if self.scheme == b"file" {
            return self.path.starts_with(b"/");
        }
        !self.scheme.is_empty() && !self.host.is_empty()
    }

    /// A reference seen from here, `None` if it is no URL. A fragment of the base does not count.
    pub fn join(&self, reference: &str) -> Option<Self> {
        let reference = Self::of(reference)?;
        let text = self.resolved(reference).text();
        Self::of(&text)
    }

    fn resolved(&self, mut reference: Self) -> Self {
        let absolute = !reference.scheme.is_empty() || !reference.host.is_empty() || reference.user.is_some();
        if reference.scheme.is_empty() {
            reference.scheme.clone_from(&self.scheme);
        }
        let path = reference.escaped_path();
        if absolute {
            // A reference without a path that begins with a slash is opaque, and stays so.
            if reference.opaque.is_empty() {
                let _ = reference.set_path(&without_dots(b"", &path));
            }
            return reference;
        }
        if path.is_empty() && !reference.force_query && reference.query.is_empty() {
            reference.query.clone_from(&self.query);
        }
        if path.is_empty() && !self.opaque.is_empty() {
            reference.opaque.clone_from(&self.opaque);
            return reference;
        }
        reference.host.clone_from(&self.host);
        reference.user.clone_from(&self.user);
        let _ = reference.set_path(&without_dots(&self.escaped_path(), &path));
        reference
    }
}

/// A path seen from a base, with a leading slash and without `.` and `..`.
fn without_dots(base: &[u8], path: &[u8]) -> Vec<u8> {
    let folder = memchr::memrchr(b'/', base).map_or(0, |slash| slash + 1);
    let full = match path.first() {
        None => base.to_vec(),
        Some(b'/') => path.to_vec(),
        Some(_) => [base.get(..folder).unwrap_or_default(), path].concat(),
    };
    if full.is_empty() {
        return full;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut last: &[u8] = b"";
    for part in full.split(|byte| *byte == b'/') {
        last = part;
        match part {
            b"." => {}
            b".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    if matches!(last, b"." | b"..") {
        kept.push(b"");
    }
    let joined = kept.join(&b'/');
    if joined.starts_with(b"/") { joined } else { [b"/", joined.as_slice()].concat() }
}
