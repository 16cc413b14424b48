/** The session of the console. The browser and the server are doubles. A page runs on after `location.replace`, as in a browser. */
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, it, vi } from "vitest";

interface Sent {
  url: string;
  token: string | null;
}

interface SessionModule {
  startSession(): Promise<void>;
  signedFetch(url: string, init?: RequestInit): Promise<Response>;
  socketToken(): Promise<string | undefined>;
  checkSession(): Promise<void>;
  enter(candidate: string | undefined): Promise<boolean>;
  renew(): Promise<boolean>;
  signOut(): void;
  hasToken(): boolean;
}

const SECRET = "/message-of-ada";
let sent: Sent[];
let loads: string[];
let answer: (sent: Sent) => Response | Promise<Response>;
let ears: Map<string, () => void>;
/** The storage of the tab. */
let tab: Map<string, string>;

const reader = (subject: string) => Response.json({ subject, tenant: "t", roles: [] });
const refusal = () => Response.json({ detail: "The token has expired." }, { status: 401 });
const sentAsBob = () => sent.filter(({ url, token }) => url === SECRET && token === "Bearer B");

function storageOf(items: Map<string, string>) {
  return {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => items.set(key, value),
    removeItem: (key: string) => items.delete(key),
    clear: () => items.clear(),
  };
}

beforeEach(() => {
  sent = [];
  loads = [];
  ears = new Map();
  tab = new Map();
  const addEventListener = (type: string, ear: () => void) => ears.set(type, ear);
  vi.stubGlobal("sessionStorage", storageOf(tab));
  vi.stubGlobal("localStorage", storageOf(new Map()));
  vi.stubGlobal("document", { visibilityState: "visible", addEventListener });
  vi.stubGlobal("window", { location: { replace: (to: string) => loads.push(to) }, addEventListener });
  vi.stubGlobal(
    "BroadcastChannel",
    class {
      onmessage?: (event: { data: unknown }) => void;
      constructor() {
        ears.set("another tab that entered", () => this.onmessage?.({ data: { type: "entered" } }));
      }
      postMessage() {}
      close() {}
    },
  );
  vi.stubGlobal("fetch", async (url: string, init: RequestInit = {}) => {
    const one = { url, token: new Headers(init.headers).get("authorization") };
    sent.push(one);
    return answer(one);
  });
  return () => {
    vi.unstubAllGlobals();
    vi.useRealTimers();
  };
});

/** Loads the page. */
async function opened(): Promise<SessionModule> {
  vi.resetModules();
  // The types of the browser are not in this project.
  const path = "../../app/src/session.ts";
  const session: SessionModule = await import(path);
  await session.startSession();
  return session;
}

/** Opens Ada's page. The server refuses her token if `ada.isOver`. Bob's token is `B`. */
async function adaSignedIn(signIn?: { page: string; token: string }) {
  tab.set("dramatis.session", JSON.stringify({ subject: "ada", tenant: "t", token: "A" }));
  const ada = { isOver: false, isGone: false };
  answer = ({ url, token }) => {
    if (url === "/health") return Response.json({ ...(signIn && { signIn }) });
    if (url === signIn?.token) return ada.isGone ? new Response("B") : new Response(null, { status: 401 });
    if (token === "Bearer B") return reader("bob");
    return token === "Bearer A" && !ada.isOver ? reader("ada") : refusal();
  };
  return { session: await opened(), ada };
}

/** Opens Ada's page. Her login uses a cookie. */
async function adaByCookie() {
  const login = { user: "ada" };
  answer = ({ url }) =>
    url === "/health" ? Response.json({ signIn: { page: "/login" } }) : reader(login.user);
  return { session: await opened(), login };
}

describe("SIGNIN-5 the session", () => {
  it.each(["focus", "visibilitychange", "another tab that entered"])(
    "SIGNIN-5 notices another user of a login without tokens on %s",
    async (type) => {
      const { session, login } = await adaByCookie();
      tab.set("draft", "A draft of Ada.");
      ears.get(type)?.();
      await setImmediate();
      expect([loads, tab.has("draft")]).toEqual([[], true]);
      login.user = "bob";
      ears.get(type)?.();
      await vi.waitFor(() => expect(loads).toEqual(["/"]));
      void session.signedFetch(SECRET, { method: "POST" });
      expect([tab.has("draft"), sent.some(({ url }) => url === SECRET)]).toEqual([false, false]);
    },
  );

  it("SIGNIN-6 sends no request while it checks a login without tokens", async () => {
    const { session, login } = await adaByCookie();
    const before = sent.length;
    login.user = "bob";
    ears.get("focus")?.();
    void session.signedFetch(SECRET, { method: "POST" });
    await setImmediate();
    expect([loads, sent.slice(before).map(({ url }) => url)]).toEqual([["/"], ["/api/me"]]);
  });

  it("sends a request after a check that names the same user", async () => {
    const { session } = await adaByCookie();
    ears.get("focus")?.();
    await session.signedFetch(SECRET);
    expect(sent.slice(-2).map(({ url }) => url)).toEqual(["/api/me", SECRET]);
  });

  it("SIGNIN-5 gives no socket to another user of a login without tokens", async () => {
    const { session, login } = await adaByCookie();
    login.user = "bob";
    const opening = session.socketToken().then(() => "opened");
    await vi.waitFor(() => expect(loads).toEqual(["/"]));
    expect(await Promise.race([opening, setImmediate("none")])).toBe("none");
  });

  it("SIGNIN-5 of a tab that did not run during the sign-out ends at its start, and a later one stays", async () => {
    const { session } = await adaByCookie();
    tab.set("draft", "A draft of Ada.");
    const kept = new Map(tab);
    vi.setSystemTime(Date.now() + 1_000);
    session.signOut();
    for (const [key, value] of kept) tab.set(key, value);
    await opened();
    expect(tab.has("draft")).toBe(false);
    tab.set("draft", "A later draft.");
    await opened();
    expect(tab.has("draft")).toBe(true);
  });
});

describe("SIGNIN-6 a page that the reader has left", () => {
  it("SIGNIN-5 SIGNIN-6 sends no waiting request as another user after two renewals at once", async () => {
    const { session, ada } = await adaSignedIn({ page: "/login", token: "/login/token" });
    ada.isOver = true;
    void session.signedFetch(SECRET, { method: "POST" });
    await setImmediate();
    ada.isGone = true;
    const before = sent.length;
    // The reader returns to the tab: the browser sends `visibilitychange` and `focus`.
    void session.renew();
    void session.renew();
    await vi.waitFor(() => expect(loads).toEqual(["/"]));
    void session.renew();
    await setImmediate();
    expect({ loads, bob: sentAsBob() }).toEqual({ loads: ["/"], bob: [] });
    expect(sent.slice(before).map(({ url }) => url)).toEqual(["/login/token", "/api/me"]);
  });

  it("SIGNIN-6 sends no request as another user, also if it was under way", async () => {
    const { session, ada } = await adaSignedIn();
    const usual = answer;
    const late = Promise.withResolvers<Response>();
    answer = (one) => (one.url === SECRET && one.token === "Bearer A" ? late.promise : usual(one));
    void session.signedFetch(SECRET, { method: "POST" });
    ada.isOver = true;
    void session.checkSession();
    await setImmediate();
    await session.enter("B");
    late.resolve(refusal());
    void session.signedFetch(SECRET, { method: "POST" });
    const token = await Promise.race([session.socketToken(), setImmediate("none")]);
    expect({ loads, bob: sentAsBob(), token }).toEqual({ loads: ["/"], bob: [], token: "none" });
  });

  it("SIGNIN-6 stays left when a sign-in ends after the sign-out", async () => {
    const { session } = await adaSignedIn();
    const late = Promise.withResolvers<Response>();
    answer = () => late.promise;
    const entered = session.enter("A");
    session.signOut();
    late.resolve(reader("ada"));
    await Promise.race([entered, setImmediate()]);
    expect([session.hasToken(), [...tab], loads]).toEqual([false, [], ["/"]]);
  });
});
