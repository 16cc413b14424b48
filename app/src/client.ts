/** The HTTP client of the page: same origin, no token. */
import { createClient } from "../../src/client/index.ts";

export const client = createClient();
