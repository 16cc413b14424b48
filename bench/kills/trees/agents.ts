/** The agent at the root of a tree. Users talk with it. */
export const CHIEF = "chief";
