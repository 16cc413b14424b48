/** The tenants of the case `run-trees`, and the agent of each. */
export const AGENT = "target";
export const OTHER = "other";
export const ATTACKER = "attacker";
/** The workflow that begins a tree. */
export const ROOT = "trees/level-0";
