/** The sign-in: a page before the console, and a dialog over the console when the session has ended. */
import { type FormEvent, type ReactNode, useEffect, useState } from "react";
import { messageOf } from "../format.ts";
import { enter, renew, type Session, signOut, useSession } from "../session.ts";
import { App } from "./app.tsx";
import { FIELD, Field } from "./field.tsx";
import { Logo } from "./logo.tsx";
import { useDialog } from "./modal.tsx";

const BUTTON =
  "inline-block rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted";

/** The console, or the sign-in. The console stays below the dialog, with its drafts and unsent messages. */
export function SignInGate() {
  const session = useSession();
  if (session.phase === "starting" || session.phase === "left") return null;
  const isRefused = session.phase === "refused";
  if (isRefused && session.reader === undefined) return <SignInPage session={session} />;
  return (
    <>
      <App />
      {isRefused && <SignInDialog session={session} />}
    </>
  );
}

function SignInPage({ session }: { session: Session }) {
  return (
    <main className="flex h-full flex-col items-center overflow-y-auto px-4 py-[12vh]">
      <div className="w-full max-w-sm space-y-4" data-testid="sign-in">
        <div className="flex items-center gap-2.5">
          <Logo />
          <h1 className="font-semibold tracking-tight">Sign in to Dramatis</h1>
        </div>
        <SignInForm session={session} isNewTab={false} />
      </div>
    </main>
  );
}

function SignInDialog({ session }: { session: Session }) {
  const dialog = useDialog();
  return (
    <dialog
      ref={dialog}
      aria-labelledby="sign-in-again"
      data-testid="sign-in-again"
      onCancel={(event) => event.preventDefault()}
      // Chromium closes a dialog at the second Escape without asking.
      onClose={() => dialog.current?.showModal()}
      className="m-auto w-sm max-w-[calc(100vw-1.5rem)] rounded-2xl border border-line bg-surface p-5 text-ink shadow-lg backdrop:bg-black/40"
    >
      <div className="space-y-4">
        <div>
          <h2 id="sign-in-again" className="font-semibold">
            Your session has ended
          </h2>
          <p className="mt-1 text-sm text-muted">
            Sign in as {session.reader?.subject} to continue. Drafts and unsent messages stay. If another user
            signs in, they are deleted.
          </p>
        </div>
        <SignInForm session={session} isNewTab>
          <button type="button" onClick={signOut} className="text-sm text-muted underline underline-offset-2">
            Sign out
          </button>
        </SignInForm>
      </div>
    </dialog>
  );
}

interface SignInFormProps {
  session: Session;
  /** The login opens in a new tab, so that the page stays. */
  isNewTab: boolean;
  children?: ReactNode;
}

function SignInForm({ session: { signIn, reason }, isNewTab, children }: SignInFormProps) {
  return signIn === undefined ? (
    <TokenForm reason={reason}>{children}</TokenForm>
  ) : (
    <Login page={signIn.page} isNewTab={isNewTab}>
      {children}
    </Login>
  );
}

const focus = (input: HTMLInputElement | null) => input?.focus();

function TokenForm({ reason, children }: { reason: string | undefined; children: ReactNode }) {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | undefined>(undefined);
  const [isRefused, setRefused] = useState(false);
  const [isBusy, setBusy] = useState(false);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    setRefused(false);
    try {
      setRefused(!(await enter(text.trim())));
    } catch (cause) {
      setError(messageOf(cause));
    }
    setBusy(false);
  }

  const refusal = isRefused ? reason || "The server refused this token." : undefined;
  return (
    <form onSubmit={(event) => void submit(event)} className="space-y-4">
      {!isRefused && reason !== undefined && reason !== "" && <p className="text-sm text-muted">{reason}</p>}
      <Field
        label="Token"
        description="Ask your operator for a token. It stays in this tab."
        error={error ?? refusal}
      >
        {(control) => (
          <input
            {...control}
            ref={focus}
            type="password"
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={(event) => setText(event.target.value)}
            data-testid="token"
            className={FIELD}
          />
        )}
      </Field>
      <div className="flex items-center gap-4">
        <button type="submit" disabled={isBusy || text.trim() === ""} className={BUTTON}>
          Sign in
        </button>
        {children}
      </div>
    </form>
  );
}

function Login({ page, isNewTab, children }: { page: string; isNewTab: boolean; children: ReactNode }) {
  const [error, setError] = useState("");

  // The reader returns from the login in another tab.
  useEffect(() => {
    const look = () => {
      if (document.visibilityState !== "visible") return;
      renew().catch((cause: unknown) => setError(messageOf(cause)));
    };
    document.addEventListener("visibilitychange", look);
    window.addEventListener("focus", look);
    return () => {
      document.removeEventListener("visibilitychange", look);
      window.removeEventListener("focus", look);
    };
  }, []);

  return (
    <>
      {error !== "" && (
        <p role="alert" className="text-sm text-danger">
          {error}
        </p>
      )}
      <div className="flex items-center gap-4">
        <a
          href={withReturn(page)}
          {...(isNewTab ? { target: "_blank", rel: "noreferrer" } : {})}
          className={BUTTON}
        >
          Sign in
        </a>
        {children}
      </div>
    </>
  );
}

/** Adds the path of the page to the address of the login. */
function withReturn(page: string): string {
  const { origin, pathname, search } = window.location;
  const address = new URL(page, origin);
  address.searchParams.set("return", pathname + search);
  return address.href;
}
