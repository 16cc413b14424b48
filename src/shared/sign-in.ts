/**
 * The addresses of an application's own login, for the console. Pure.
 *
 * SIGNIN-1  `page` and `signOut` are paths of the server, or addresses with `https:`. `token` is a path of the server. Other values are
 *           refused at start, and the console does not use them. So no script and no other server gets the place of the login.
 */
import { invalid } from "./errors.ts";

/** How the console signs its readers in. */
export interface SignIn {
  /** The page of the login. The console opens it with the query parameter `return`: the path of the console's page. */
  page: string;
  /** The path that answers `GET` with a token as text, or with 401 if nobody is signed in. Absent if `authorize` needs no token. */
  token?: string;
  /** The page that ends the login. The console opens it when the reader signs out. */
  signOut?: string;
}

/** Any origin: paths are resolved against it. */
const HERE = "https://server.invalid";

/** Reports whether a value is an absolute path of the server. */
export function isOwnPath(value: unknown): value is string {
  if (typeof value !== "string" || !value.startsWith("/") || !URL.canParse(value, HERE)) return false;
  return new URL(value, HERE).origin === HERE;
}

/** Reports whether a value is an absolute path of the server, or an address with `https:` and without a password. */
export function isPageAddress(value: unknown): value is string {
  if (isOwnPath(value)) return true;
  if (typeof value !== "string" || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return protocol === "https:" && username === "" && password === "";
}

/** Throws `INVALID_INPUT` for a member that is no permitted address (SIGNIN-1). */
export function checkSignIn({ page, token, signOut }: SignIn): void {
  const refuse = (name: string, value: unknown, form: string) =>
    invalid(`\`console.signIn.${name}\` is "${value}". Write ${form}.`);
  const address = 'a path such as "/login", or an address with "https:"';
  if (!isPageAddress(page)) throw refuse("page", page, address);
  if (token !== undefined && !isOwnPath(token))
    throw refuse("token", token, 'a path of this server, such as "/login/token"');
  if (signOut !== undefined && !isPageAddress(signOut)) throw refuse("signOut", signOut, address);
}
