/** The agent that users of trees talk with. */
export const CHIEF = "chief";
