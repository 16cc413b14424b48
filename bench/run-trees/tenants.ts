/** The tenants of the case `run-trees`, and the agent of each. */
export const AGENT = "target";
export const OTHER = "other";
export const ATTACKER = "attacker";
/** The workflow at the root of a tree. */
export const ROOT = "trees/level-0";
