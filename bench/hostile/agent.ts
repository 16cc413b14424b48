/** The agent of the case `hostile`, in each of its tenants. */
export const AGENT = "target";
export const OTHER = "other";
export const TENANTS = ["attacker", OTHER];
