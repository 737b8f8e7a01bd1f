//! Looks at the custom resources of the cluster, page by page, whether they fit schemas.

use jiff::Timestamp;
use olm_core::api::object::Gvk;
use olm_core::api::status::Status;
use olm_core::structural::{Fit, FitFact, Fitting};

use super::api::{Api, Resource};

/// How often a list is begun anew because its pages became too old to go on with.
const TRIES: usize = 3;

/// Reads every custom resource in every version that is asked for. No more than a page is held at a time.
pub(super) async fn look(api: &Api, question: &Fit) -> FitFact {
    let mut tries = 0;
    loop {
        tries += 1;
        let mut fitting = Fitting::new(question);
        match read(api, question, &mut fitting).await {
            Ok(()) => return fitting.end(Timestamp::now(), None),
            // Begun anew, it would count what it has counted: the first attempt is forgotten.
            Err(refusal) if refusal.code == 410 && tries < TRIES => {}
            Err(refusal) => return fitting.end(Timestamp::now(), Some(refusal)),
        }
    }
}

async fn read(api: &Api, question: &Fit, fitting: &mut Fitting<'_>) -> Result<(), Status> {
    for (version, _) in &question.schemas {
        let resource = Resource {
            gvk: Gvk::new(&question.group, version, &question.kind),
            plural: question.plural.clone(),
            namespaced: question.namespaced,
        };
        let mut token = String::new();
        loop {
            let page = api.list(&resource, "", &token).await?;
            page.objects.into_iter().for_each(|object| fitting.look(version, object));
            if page.next.is_empty() {
                break;
            }
            token = page.next;
        }
    }
    Ok(())
}
