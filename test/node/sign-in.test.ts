/** The addresses of an application's login. */
import { describe, expect, it } from "vitest";
import { checkSignIn, isOwnPath, isPageAddress } from "../../src/shared/sign-in.ts";

describe("the login of the console", () => {
  const hostile = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example/login",
    "/\\evil.example/login",
    "/\t/evil.example/login",
    "http://evil.example/login",
    "https://ada:secret@evil.example/login",
    "login",
    "",
    null,
    {},
  ];

  it.each(hostile)("G21 SIGNIN-1 %j is no address of a login", (value) => {
    expect([isOwnPath(value), isPageAddress(value)]).toEqual([false, false]);
    // SAFETY: JavaScript applications have no types.
    const page = value as string;
    for (const signIn of [{ page }, { page: "/login", token: page }, { page: "/login", signOut: page }]) {
      expect(() => checkSignIn(signIn)).toThrow(/`console\.signIn\.(page|token|signOut)` is/);
    }
  });

  it("G21 SIGNIN-1 takes paths and https addresses, and tokens only from the server itself", () => {
    checkSignIn({ page: "https://id.example.com/login?app=1", token: "/token", signOut: "/logout" });
    expect(() => checkSignIn({ page: "/login", token: "https://id.example.com/token" })).toThrow(
      'Write a path of this server, such as "/login/token".',
    );
  });
});
