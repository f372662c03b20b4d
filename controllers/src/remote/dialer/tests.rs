use super::*;
use crate::remote::testing::Names;
use url::Url;

fn dialer_with(allow: &[&str], hub: &[&str], names: &[(&str, &[&str])]) -> Arc<Dialer> {
    let nets = |all: &[&str]| all.iter().map(|net| net.parse().unwrap()).collect();
    let known = Names::default();
    for (name, addresses) in names {
        known.known.lock().insert((*name).to_owned(), addresses.iter().map(|a| a.parse().unwrap()).collect());
    }
    let settings = DialerSettings {
        allow_edge_addresses: nets(allow),
        hub: HubHosts::new(hub.iter().copied()),
        ..DialerSettings::default()
    };
    Dialer::new(settings, Arc::new(known))
}

async fn ok(dialer: &Dialer, host: &str, policy: Policy) -> bool {
    dialer.addresses(host, policy).await.is_ok()
}

#[tokio::test]
async fn tenants_reach_public_addresses_alone_however_they_are_written() {
    let dialer = dialer_with(&[], &["203.0.113.7"], &[]);
    for refused in [
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "0.0.0.0",
        "0.1.2.3",
        "224.0.0.1",
        "255.255.255.255",
        "203.0.113.7",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd12::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "::ffff:203.0.113.7",
        "[::1]",
        "240.0.0.1",
        "198.18.0.1",
    ] {
        let error = dialer.addresses(refused, Policy::Tenant).await.unwrap_err();
        assert_eq!(error.reason(), "AddressNotAllowed", "{refused}");
    }
    for allowed in
        ["93.184.216.34", "172.32.0.1", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34"]
    {
        assert!(ok(&dialer, allowed, Policy::Tenant).await, "{allowed}");
    }
}

#[tokio::test]
async fn admins_reach_private_addresses_and_what_is_allowed_by_flag() {
    let dialer = dialer_with(&["127.0.0.0/8"], &["10.0.0.1"], &[]);
    for allowed in ["10.1.2.3", "192.168.0.1", "fd00::1", "93.184.216.34", "127.0.0.1", "::ffff:127.0.0.1"] {
        assert!(ok(&dialer, allowed, Policy::Admin).await, "{allowed}");
    }
    for refused in ["10.0.0.1", "::ffff:10.0.0.1", "169.254.1.1", "::1", "fe80::1", "0.0.0.0", "224.0.0.1"] {
        let error = dialer.addresses(refused, Policy::Admin).await.unwrap_err();
        assert_eq!(error.reason(), "AddressNotAllowed", "{refused}");
    }
    let error = dialer.addresses("169.254.1.1", Policy::Admin).await.unwrap_err().to_string();
    assert!(error.contains("--allow-edge-address 169.254.1.1/32"), "{error}");
}

#[tokio::test]
async fn listing_an_origin_allows_all_but_addresses_of_nothing() {
    let dialer = dialer_with(&[], &["10.0.0.1"], &[]);
    for allowed in ["127.0.0.1", "10.0.0.1", "169.254.1.1"] {
        assert!(ok(&dialer, allowed, Policy::TenantListed).await, "{allowed}");
    }
    for refused in ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255"] {
        assert!(!ok(&dialer, refused, Policy::TenantListed).await, "{refused}");
    }
}

#[tokio::test]
async fn of_a_name_only_the_allowed_addresses_are_dialled_and_it_is_resolved_once() {
    let dialer = dialer_with(
        &[],
        &[],
        &[("mixed", &["127.0.0.1", "93.184.216.34"]), ("inside", &["127.0.0.1", "10.0.0.1"])],
    );
    let found = dialer.addresses("mixed", Policy::Tenant).await.unwrap();
    assert_eq!(found, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
    let error = dialer.addresses("inside", Policy::Tenant).await.unwrap_err();
    assert!(error.to_string().contains("chartSources"), "{error}");
    assert_eq!(dialer.addresses("nowhere", Policy::Tenant).await.unwrap_err().reason(), "DNSFailed");

    let names = Arc::new(Names::default());
    names.known.lock().insert("once".to_owned(), vec!["127.0.0.1".parse().unwrap()]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dialer = Dialer::new(DialerSettings::default(), Arc::clone(&names) as Arc<dyn Resolve>);
    let port = listener.local_addr().unwrap().port();
    dialer.dial("once", port, Policy::TenantListed).await.unwrap();
    assert_eq!(names.asked.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_hub_is_recognised_by_its_name_and_by_where_that_leads_today() {
    let names = Arc::new(Names::default());
    let leads = |name: &str, to: &[&str]| {
        let addresses = to.iter().map(|address| address.parse().unwrap()).collect();
        names.known.lock().insert(name.to_owned(), addresses);
    };
    let settings = DialerSettings {
        hub: HubHosts::new(["API.hub.example.com"]),
        allow_edge_addresses: vec!["203.0.113.9/32".parse().unwrap()],
        ..DialerSettings::default()
    };
    let dialer = Dialer::new(settings, Arc::clone(&names) as Arc<dyn Resolve>);
    leads("API.hub.example.com", &["203.0.113.7"]);
    leads("api.hub.example.com.", &["203.0.113.7"]);
    leads("alias.evil.example", &["::ffff:203.0.113.7"]);
    leads("charts.example.com", &["93.184.216.34"]);
    for refused in ["203.0.113.7", "alias.evil.example", "api.hub.example.com."] {
        for policy in [Policy::Tenant, Policy::Admin] {
            let error = dialer.addresses(refused, policy).await.unwrap_err();
            assert_eq!(error.reason(), "AddressNotAllowed", "{refused}");
            assert!(error.to_string().contains("an address of the hub itself"), "{error}");
        }
        assert!(ok(&dialer, refused, Policy::TenantListed).await, "an admin listed it");
    }
    assert!(ok(&dialer, "charts.example.com", Policy::Tenant).await);
    assert!(ok(&dialer, "203.0.113.8", Policy::Tenant).await, "this is somebody else's yet");

    // The hub moves; what it left is still not somebody else's for sure.
    leads("API.hub.example.com", &["203.0.113.8", "203.0.113.9"]);
    for refused in ["203.0.113.7", "203.0.113.8", "203.0.113.9"] {
        assert!(!ok(&dialer, refused, Policy::Tenant).await, "{refused}");
    }
    assert!(ok(&dialer, "203.0.113.9", Policy::Admin).await, "a flag allows it");

    // Names do not resolve any more: the hub is where it was.
    names.known.lock().remove("API.hub.example.com");
    assert!(!ok(&dialer, "203.0.113.8", Policy::Tenant).await);
    assert!(ok(&dialer, "93.184.216.34", Policy::Tenant).await);

    // Its name is its name, wherever the answer for whoever asks leads.
    leads("api.hub.example.com", &["198.51.100.1"]);
    assert!(!ok(&dialer, "api.hub.example.com", Policy::Tenant).await);
}

#[tokio::test]
async fn connections_being_made_are_limited() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let settings = DialerSettings { max_connects: 1, ..DialerSettings::default() };
    let dialer = Dialer::new(settings, Arc::new(Names::default()));
    let first = dialer.dial("127.0.0.1", port, Policy::TenantListed).await.unwrap();
    let second = dialer.dial("127.0.0.1", port, Policy::TenantListed);
    tokio::pin!(second);
    assert!(
        timeout(Duration::from_millis(50), &mut second).await.is_err(),
        "the first is still shaking hands"
    );
    drop(first);
    second.await.unwrap();
}

fn check(url: &str, sources: Option<&[&str]>) -> Result<Listing, String> {
    let sources: Option<Vec<String>> = sources.map(|all| all.iter().map(|text| (*text).to_owned()).collect());
    check_source(&Url::parse(url).unwrap(), sources.as_deref())
}

#[test]
fn an_entry_binds_scheme_host_port_and_path_prefix() {
    let list: &[&str] = &["https://charts.example.com/stable/", "http://10.0.0.5:8080"];
    for listed in [
        "https://charts.example.com/stable/index.yaml",
        "https://charts.example.com:443/stable",
        "https://CHARTS.example.com/stable/a/b.tgz?x=1",
        "http://10.0.0.5:8080/any/thing",
    ] {
        assert_eq!(check(listed, Some(list)), Ok(Listing::Listed), "{listed}");
    }
    for refused in [
        "https://charts.example.com/stable-not/index.yaml",
        "https://charts.example.com/stable/../secret/index.yaml",
        "https://charts.example.com/stable/..%2fsecret/index.yaml",
        "https://charts.example.com/stable/%2e%2e/secret",
        "https://charts.example.com:8443/stable/index.yaml",
        "http://charts.example.com/stable/index.yaml",
        "https://charts.example.com.evil.example/stable/",
        "https://10.0.0.5:8080/",
        "https://public.example/",
    ] {
        assert!(check(refused, Some(list)).is_err(), "{refused}");
    }
}

#[test]
fn an_entry_of_a_registry_lists_its_repositories_and_nothing_else_of_the_host() {
    let list: &[&str] = &["oci://registry.example.com/charts/", "oci://REG.example.com:5000"];
    for listed in [
        "https://registry.example.com/v2/charts/web/manifests/1.4.0",
        "https://registry.example.com:443/v2/charts/web/blobs/sha256:00",
        "https://reg.example.com:5000/v2/any/manifests/1.4.0",
    ] {
        assert_eq!(check(listed, Some(list)), Ok(Listing::Listed), "{listed}");
    }
    for refused in [
        "https://registry.example.com/v2/charts-not/web/manifests/1.4.0",
        "https://registry.example.com/v2/charts/..%2fsecret/manifests/1.4.0",
        "https://registry.example.com/v2/secret/web/manifests/1.4.0",
        "https://registry.example.com/charts/web",
        "https://registry.example.com/v2charts/web",
        "http://registry.example.com/v2/charts/web/manifests/1.4.0",
        "https://reg.example.com/v2/any/manifests/1.4.0",
        "https://reg.example.com:5000/token",
    ] {
        assert!(check(refused, Some(list)).is_err(), "{refused}");
    }
}

#[test]
fn without_a_list_only_https_is_public_and_credentials_stay_out_of_urls() {
    assert_eq!(check("https://charts.example.com/", None), Ok(Listing::Public));
    assert!(check("http://charts.example.com/", None).unwrap_err().contains("plain http"));
    assert!(check("file:///etc/passwd", None).is_err());
    let error = check("https://me:hunter2@charts.example.com/", None).unwrap_err();
    assert!(error.contains("secretRef") && !error.contains("hunter2"), "{error}");
    assert!(check("https://charts.example.com/", Some(&[])).is_err(), "an empty list lists nothing");
}

/// Files of a folder and those below it, without tests.
fn sources(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs")
            && !matches!(name.as_str(), "tests.rs" | "testing.rs")
        {
            found.push(path);
        }
    }
}

/// The ways out besides: kube's client, which resolves and connects by itself. The operator has one, for its hub: where that is, its
/// own configuration says, which no tenant and no object on the hub can change, and the dialer knows the hub's addresses only from
/// there. The command line tool connects with the kubeconfigs of who runs it, on that person's machine. One is lent a connection that the
/// dialer made, and makes none.
const CLIENTS: &[&str] =
    &["controllers/src/driver/hub.rs", "controllers/src/remote/transport/lent.rs", "operator/src/cli/hub.rs"];

#[test]
fn nothing_but_the_dialer_and_the_hub_s_client_opens_connections_or_resolves_names() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in
        ["controllers/src", "controllers/engine/src", "controllers/helm/src", "crds/src", "operator/src"]
    {
        let before = files.len();
        sources(&root.join(folder), &mut files);
        assert!(files.len() > before + 10, "the sources of {folder} are elsewhere");
    }
    let mut clients = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let path = file.strip_prefix(root).unwrap().to_str().unwrap();
        let inside =
            path.starts_with("controllers/src/remote/dialer/") || path == "controllers/src/remote/dialer.rs";
        for word in [
            "TcpStream::connect",
            "TcpSocket",
            "UdpSocket",
            "UnixStream::connect",
            "lookup_host",
            "to_socket_addrs",
            "ToSocketAddrs",
            "HttpConnector",
            "hickory_resolver",
        ] {
            assert!(inside || !code.contains(word), "{path}: {word}");
        }
        if ["Client::try_from", "Client::try_default", "Client::new(", "ClientBuilder"]
            .iter()
            .any(|word| code.contains(word))
        {
            clients.push(path.to_owned());
        }
    }
    clients.sort();
    assert_eq!(clients, CLIENTS, "another client of kube's goes past the dialer");
}

#[test]
fn the_proxy_is_asked_for_public_hosts_that_no_entry_excepts() {
    let settings = DialerSettings {
        proxy: Some(Proxy::parse("http://proxy.example:3128").unwrap()),
        no_proxy: NoProxy::new(&["near.example.com".to_owned(), "203.0.113.0/24".to_owned()]),
        ..DialerSettings::default()
    };
    let dialer = Dialer::new(settings, Arc::new(Names::default()));
    for (host, address, asked) in [
        ("charts.example.com", "93.184.216.34", true),
        ("charts.near.example.com", "93.184.216.34", false),
        ("charts.example.com", "203.0.113.7", false),
        ("charts.example.com", "10.0.0.1", false),
    ] {
        let proxy = dialer.proxy_for(host, address.parse().unwrap());
        assert_eq!(proxy.is_some(), asked, "{host} at {address}");
    }
}
