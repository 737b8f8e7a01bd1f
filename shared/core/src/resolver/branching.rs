//! The variable that an engine decides next: the one that took part in most of the latest conflicts.

/// A heap of variables by their activity. The order among equals and the growth of activity are those of OLM's engine.
#[derive(Debug)]
pub(super) struct BranchingHeuristic {
    heap: Vec<usize>,
    place: Vec<Option<usize>>,
    activity: Vec<f64>,
    /// The value to try: the last one, or the one in more clauses.
    first_value: Vec<bool>,
    increment: f64,
    conflicts: f64,
    most_decay: f64,
}

/// Number of conflicts over which the decay is spread.
const SPREAD: f64 = 1536.0;
const LEAST_DECAY: f64 = 0.67;
const FIRST_DECAY: f64 = 0.935;
const LAST_DECAY: f64 = 0.9875;
const INERTIA: f64 = 0.9999;

impl Default for BranchingHeuristic {
    fn default() -> Self {
        Self {
            heap: Vec::new(),
            place: vec![None; 130],
            activity: vec![0.0; 130],
            first_value: vec![true; 130],
            increment: 1.0,
            conflicts: 0.0,
            most_decay: FIRST_DECAY,
        }
    }
}

impl BranchingHeuristic {
    /// Adds variables below `top`, all of which can be decided.
    pub(super) fn grow(&mut self, top: usize) {
        for variable in self.place.len()..=top {
            self.place.push(Some(self.heap.len()));
            self.heap.push(variable);
        }
        self.activity.resize(top + 1, 0.0);
        self.first_value.resize(top + 1, true);
        let end = self.heap.len();
        for at in (0..end / 2).rev() {
            self.down(at);
        }
    }

    /// Returns a variable to the heap, with the value to try.
    pub(super) fn push(&mut self, variable: usize, value: bool) {
        self.first_value[variable] = value;
        if self.place[variable].is_none() {
            self.place[variable] = Some(self.heap.len());
            self.heap.push(variable);
            self.up(self.heap.len() - 1);
        }
    }

    /// Sets the value to try first.
    pub(super) fn prefer(&mut self, variable: usize, value: bool) {
        self.first_value[variable] = value;
    }

    /// Removes and returns the most active unassigned variable, and the value to try.
    pub(super) fn pop(&mut self, is_open: impl Fn(usize) -> bool) -> Option<(usize, bool)> {
        loop {
            let last = self.heap.len().checked_sub(1)?;
            self.swap(0, last);
            let variable = self.heap.pop()?;
            self.down(0);
            self.place[variable] = None;
            if is_open(variable) {
                return Some((variable, self.first_value[variable]));
            }
        }
    }

    /// Returns whether a variable in the heap is unassigned.
    pub(super) fn has(&self, is_open: impl Fn(usize) -> bool) -> bool {
        self.heap.iter().any(|v| is_open(*v))
    }

    /// Increases the activity of a variable that took part in a conflict.
    pub(super) fn bump(&mut self, variable: usize) {
        self.activity[variable] += self.increment;
        if let Some(at) = self.place[variable] {
            self.down(at);
            self.up(at);
        }
    }

    /// Starts a search.
    pub(super) fn begin(&mut self) {
        self.conflicts = 0.0;
        self.most_decay = INERTIA * self.most_decay + (1.0 - INERTIA) * LAST_DECAY;
    }

    /// Ends a conflict: later ones weigh more.
    pub(super) fn decay(&mut self) {
        self.conflicts += 1.0;
        let share = (-100.0 * (1.0 - self.conflicts / SPREAD)).exp();
        self.increment /= self.most_decay - share * (self.most_decay - LEAST_DECAY);
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.activity[self.heap[at]] <= self.activity[self.heap[parent]] {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, mut at: usize) {
        let of = |this: &Self, at: usize| this.activity[this.heap[at]];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && of(self, child) <= of(self, child + 1) {
                child += 1;
            }
            if of(self, child) <= of(self, at) {
                break;
            }
            self.swap(at, child);
            at = child;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for at in [a, b] {
            self.place[self.heap[at]] = Some(at);
        }
    }
}
