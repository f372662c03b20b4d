//! Says whether what has objects on clusters is suspended: a deployment by its own field, and all of a project by the project's.

use std::sync::Arc;

use emco_crds::DeploymentIntentGroup;
use emco_engine::hold::{self, Hold};

use crate::object::meta;
use crate::stores::Stores;

/// Whether the project that claims a namespace of the hub is suspended.
pub fn of_project(stores: &Stores, namespace: &str) -> bool {
    stores.suspended.project(namespace).is_some()
}

/// A deployment as its project lets it be: suspended where the project is.
pub fn with_project(stores: &Stores, dig: Arc<DeploymentIntentGroup>) -> Arc<DeploymentIntentGroup> {
    if dig.spec.is_suspended() || !of_project(stores, meta::namespace(dig.as_ref())) {
        return dig;
    }
    let mut suspended = Arc::unwrap_or_clone(dig);
    suspended.spec.suspend = Some(true);
    Arc::new(suspended)
}

/// What has to be unset for a deployment to go on: its own field, that of the project, or both.
pub fn field(stores: &Stores, dig: &DeploymentIntentGroup) -> String {
    let (namespace, name) = (meta::namespace(dig), meta::name(dig));
    let own = stores.digs.named(namespace, name).is_some_and(|stored| stored.spec.is_suspended());
    match stores.suspended.project(namespace) {
        Some(project) if own => format!("{} and of the deployment", hold::field_of_project(&project)),
        Some(project) => hold::field_of_project(&project),
        None => hold::FIELD.to_owned(),
    }
}

/// The same for what has no such field of its own, where the project is suspended.
pub fn of_owner(stores: &Stores, namespace: &str) -> Option<String> {
    stores.suspended.project(namespace).map(|project| hold::field_of_project(&project))
}

/// Why nothing is done for what has no such field of its own, where the project is suspended.
pub fn of_all(stores: &Stores, namespace: &str) -> Option<Hold> {
    let suspending = of_owner(stores, namespace)?;
    Some(Hold { suspended: true, suspending, ..Hold::default() })
}
