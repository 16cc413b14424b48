/** The HTTP client of the page: its own server, with the token of the session. */
import { createClient } from "../../src/client/index.ts";
import { signedFetch } from "./session.ts";

export const client = createClient({ fetch: signedFetch });
