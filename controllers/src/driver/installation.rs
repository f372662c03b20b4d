//! Makes the keys of this installation once, and reads them: labels and digests on every edge depend on them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use emco_crds::names::object::INSTALLATION;
use emco_engine::path::ApiPath;
use emco_engine::snapshot::Installation;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::api::world::Random;
use crate::api::{ApiError, ApiServer, ApiServerExt};

const ID: &str = "id";
const DIGEST_KEY: &str = "digest-key";
const RANDOM_KEY: &str = "random-key";
/// Bytes of each.
const LENGTH: usize = 32;

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// The hub refused or did not answer: trying again may help.
    #[error("the Secret {name} cannot be {what}: {error}")]
    Hub {
        /// `namespace/name`
        name: String,
        /// `read` or `made`.
        what: &'static str,
        /// Its answer.
        error: ApiError,
    },
    /// What is stored is not what the operator wrote. Going on with other keys would orphan what is deployed.
    #[error(
        "the Secret {name} is malformed: key {key} {problem}. Restore it from a backup; delete it only where this installation never deployed anything"
    )]
    Malformed {
        /// `namespace/name`
        name: String,
        /// Of the Secret's data.
        key: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl InstallationError {
    /// Nothing helps but a person.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Malformed { .. })
    }
}

/// Reads the keys, or makes them where there are none. Two processes that do so at once get the same ones.
pub async fn load(
    hub: &dyn ApiServer,
    namespace: &str,
    random: &dyn Random,
) -> Result<Installation, InstallationError> {
    let name = format!("{namespace}/{INSTALLATION}");
    let collection = ApiPath::core(namespace, "secrets");
    let path = collection.clone().then(INSTALLATION);
    let failed = |what| {
        let name = name.clone();
        move |error| InstallationError::Hub { name, what, error }
    };
    if let Some(secret) = hub.get_opt(&path).await.map_err(failed("read"))? {
        return read(&name, &secret);
    }
    match hub.create(&collection, &fresh(namespace, random)).await {
        Ok(secret) => {
            tracing::info!(secret = name, "made the keys of a new installation: back them up");
            read(&name, &secret)
        }
        Err(error) if error.already_exists() => {
            let secret = hub.get_opt(&path).await.map_err(failed("read"))?;
            read(&name, &secret.unwrap_or_default())
        }
        Err(error) => Err(failed("made")(error)),
    }
}

fn fresh(namespace: &str, random: &dyn Random) -> Value {
    let key = || {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        random.secret(bytes.as_mut());
        STANDARD.encode(bytes.as_slice())
    };
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true,
        "metadata": {"namespace": namespace, "name": INSTALLATION},
        "data": {ID: key(), DIGEST_KEY: key(), RANDOM_KEY: key()},
    })
}

/// The keys that the Secret `name` holds.
#[allow(clippy::result_large_err)] // read once per process
pub fn read(name: &str, secret: &Value) -> Result<Installation, InstallationError> {
    let key = |key: &'static str| -> Result<[u8; LENGTH], InstallationError> {
        let malformed =
            |problem: String| InstallationError::Malformed { name: name.to_owned(), key, problem };
        let text = secret.pointer(&format!("/data/{key}")).and_then(Value::as_str);
        let text = text.ok_or_else(|| malformed("is missing".to_owned()))?;
        let bytes = STANDARD.decode(text).map_err(|_| malformed("is not base64".to_owned()))?;
        let length = bytes.len();
        let bytes: [u8; LENGTH] =
            bytes.try_into().map_err(|_| malformed(format!("has {length} bytes instead of {LENGTH}")))?;
        if bytes == [0; LENGTH] { Err(malformed("is all zeros".to_owned())) } else { Ok(bytes) }
    };
    Ok(Installation { id: hex::encode(key(ID)?), digest_key: key(DIGEST_KEY)?, random_key: key(RANDOM_KEY)? })
}

/// Makes the operator's namespace where it is absent. Who may not read namespaces is taken to have one: it runs in it.
pub async fn ensure_namespace(hub: &dyn ApiServer, namespace: &str) -> Result<(), ApiError> {
    match hub.get_opt(ApiPath::namespace(namespace)).await {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => {}
        Err(error) if error.code() == 403 => return Ok(()),
        Err(error) => return Err(error),
    }
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    match hub.create("/api/v1/namespaces", &object).await {
        Ok(_) => {
            tracing::info!(namespace, "made the operator's namespace");
            Ok(())
        }
        Err(error) if error.already_exists() => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::world::system::SystemRandom;
    use crate::memory::{Fault, MemoryServer};

    const PATH: &str = "/api/v1/namespaces/emco-system/secrets/emco-installation";

    async fn hub() -> MemoryServer {
        let hub = MemoryServer::new();
        ensure_namespace(&hub, "emco-system").await.unwrap();
        hub
    }

    fn same(a: &Installation, b: &Installation) -> bool {
        (&a.id, a.digest_key, a.random_key) == (&b.id, b.digest_key, b.random_key)
    }

    #[tokio::test]
    async fn keys_are_made_once_and_each_is_another() {
        let hub = hub().await;
        let made = load(&hub, "emco-system", &SystemRandom::new()).await.unwrap();
        let again = load(&hub, "emco-system", &SystemRandom::new()).await.unwrap();
        assert!(same(&made, &again));
        assert_eq!(made.id.len(), 64);
        assert_ne!(made.digest_key, made.random_key);
        assert_ne!(made.id, hex::encode(made.digest_key));
        assert_eq!(hub.object(PATH).unwrap()["immutable"], true);
    }

    #[tokio::test]
    async fn who_comes_second_takes_the_keys_of_the_first() {
        let hub = hub().await;
        let random = SystemRandom::new();
        let (a, b) = tokio::join!(load(&hub, "emco-system", &random), load(&hub, "emco-system", &random));
        assert!(same(&a.unwrap(), &b.unwrap()));
    }

    #[tokio::test]
    async fn a_lost_answer_is_an_error_that_the_next_try_mends() {
        let hub = hub().await;
        hub.faults(Some(Arc::new(|request, _| {
            (request.method == crate::api::Method::Post).then_some(Fault::LoseAnswer)
        })));
        let error = load(&hub, "emco-system", &SystemRandom::new()).await.unwrap_err();
        assert!(!error.is_fatal(), "{error}");
        let stored = hub.object(PATH).unwrap();
        load(&hub, "emco-system", &SystemRandom::new()).await.unwrap();
        assert_eq!(hub.object(PATH).unwrap(), stored);
    }

    #[tokio::test]
    async fn a_damaged_secret_is_left_alone_and_named() {
        for (key, value, problem) in [
            ("digest-key", json!("c2hvcnQ="), "key digest-key has 5 bytes instead of 32"),
            ("random-key", json!(null), "key random-key is missing"),
            ("id", json!("###"), "key id is not base64"),
            ("id", json!(STANDARD.encode([0; 32])), "key id is all zeros"),
        ] {
            let hub = hub().await;
            let mut secret = fresh("emco-system", &SystemRandom::new());
            secret["data"][key] = value;
            hub.put("t", &secret);
            let before = hub.object(PATH);
            let error = load(&hub, "emco-system", &SystemRandom::new()).await.unwrap_err();
            assert!(error.is_fatal());
            assert!(error.to_string().contains(problem), "{error}");
            assert!(error.to_string().contains("emco-system/emco-installation"), "{error}");
            assert_eq!(hub.object(PATH), before);
        }
    }
}
