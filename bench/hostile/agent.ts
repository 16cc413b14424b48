/** The agent and the tenants of the case `hostile`. */
export const AGENT = "target";
export const OTHER = "other";
export const TENANTS = ["attacker", OTHER];
