/** The reader with tenant and roles, and the button that ends the session. */
import { canSignOut, signOut, useSession } from "../session.ts";
import { Icon } from "./icon.tsx";
import { showShortcuts } from "./shortcuts.tsx";

export function Account() {
  const { reader } = useSession();
  if (reader === undefined) return null;
  const { subject, tenant, roles } = reader;
  return (
    <footer className="flex shrink-0 items-center gap-2 border-t border-line py-2 pr-2 pl-6">
      <div className="min-w-0 flex-1 text-xs" data-testid="account">
        <p className="truncate font-medium">{subject}</p>
        <p className="truncate text-muted" title={roles.join(", ")}>
          {tenant} · {roles.length === 0 ? "no roles" : roles.join(", ")}
        </p>
      </div>
      <button
        type="button"
        onClick={showShortcuts}
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
        className="rounded-lg p-2 text-muted hover:bg-line/50 hover:text-ink pointer-coarse:hidden"
      >
        <Icon name="keyboard" />
      </button>
      {canSignOut() && (
        <button
          type="button"
          onClick={signOut}
          aria-label="Sign out"
          title="Sign out"
          data-testid="sign-out"
          className="rounded-lg p-2 text-muted hover:bg-line/50 hover:text-ink pointer-coarse:p-3"
        >
          <Icon name="leave" />
        </button>
      )}
    </footer>
  );
}
