//! Thousands of namespaces.

use serde_json::Value;

use super::super::{AT_A_TIME, PLANS, at_a_time, copy};
use super::{copies, namespace, planned, world};
use crate::plan::Action;
use crate::world::{Reader, World, kind};

fn original_of(world: &World) -> Value {
    Reader::new(world).json(&kind::CLUSTER_SERVICE_VERSION, "garden", "rose.v1").unwrap().clone()
}

#[test]
fn the_number_of_plans_does_not_grow_with_that_of_namespaces() {
    let mut world = world(&[""]);
    for n in 0..2000 {
        world.apply(namespace(&format!("field-{n:04}")));
    }
    // Copies without their status: each takes one write.
    let mut plans = 0;
    loop {
        let plan = planned(&world);
        let made = plan.actions.iter().filter_map(|action| match action {
            Action::Create(o) if o["kind"] == "ClusterServiceVersion" => Some(o.clone()),
            _ => None,
        });
        let made: Vec<Value> = made.collect();
        if made.is_empty() {
            break;
        }
        plans += 1;
        for mut copy in made {
            copy["metadata"]["uid"] = "copy".into();
            // The copy with its status.
            copy["status"] = copy::status_of(&original_of(&world));
            world.apply(copy);
        }
    }
    assert!(plans <= PLANS, "{plans} plans, each of which reads all namespaces");
    assert_eq!(copies(&world).len(), 2002);
}

#[test]
fn what_one_plan_writes_is_bounded() {
    assert_eq!(at_a_time(3, 100), AT_A_TIME);
    assert_eq!(at_a_time(6400, 1000), 100);
    assert_eq!(at_a_time(6400, 1 << 20), 16);
    assert_eq!(at_a_time(640_000, 100 << 20), AT_A_TIME);
}
