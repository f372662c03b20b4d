//! Lends a connection to kube's client, and looks at the account of its requests and at the words of refusals.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;

use super::*;

#[tokio::test]
async fn a_lent_connection_acts_as_its_account_and_quotes_no_secret() {
    for alpn in [H2, H1] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        let handler = move |request: &http::Request<Bytes>| {
            let header = |name: &str| request.headers().get(name).map(|v| v.to_str().unwrap().to_owned());
            log.lock().push((header("impersonate-user"), header("authorization")));
            if request.uri().path().ends_with("/secrets/key") {
                let words = "Secret \"key\" is invalid: data[a]: Invalid value: \"hunter2\": it is odd";
                return Reply::error(422, "Invalid", words);
            }
            assert_eq!(request.uri().path(), "/api/v1/namespaces/shop/configmaps/page");
            Reply::json(200, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page"}}))
        };
        let (edge, _server) = rig(alpn, Arc::new(handler)).await;
        let client = edge.client(Some("system:serviceaccount:shop:emco-a"));
        let page = Api::<ConfigMap>::namespaced(client.clone(), "shop").get("page").await.unwrap();
        assert_eq!(page.metadata.name.as_deref(), Some("page"));
        let error = Api::<Secret>::namespaced(client, "shop").get("key").await.unwrap_err();
        let kube::Error::Api(status) = &error else { panic!("{error}") };
        assert_eq!(status.code, 422);
        assert!(status.message.contains("Secret shop/key"), "{}", status.message);
        assert!(!error.to_string().contains("hunter2"), "{error}");
        for (account, token) in seen.lock().iter() {
            assert_eq!(account.as_deref(), Some("system:serviceaccount:shop:emco-a"));
            assert_eq!(token.as_deref(), Some("Bearer tok"));
        }
    }
}

#[tokio::test]
async fn nobody_but_a_service_account_is_acted_as() {
    let (edge, server) = rig(H1, always(|| Reply::json(200, &json!({})))).await;
    let client = edge.client(Some("system:admin"));
    let error = Api::<ConfigMap>::namespaced(client, "shop").get("page").await.unwrap_err();
    assert!(format!("{error:?}").contains("is not a ServiceAccount that can be acted as"), "{error:?}");
    assert_eq!(server.connections.load(Ordering::SeqCst), 0, "nothing is sent");
}
