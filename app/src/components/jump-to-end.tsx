/** A button that scrolls to the newest message. */
import { Icon } from "./icon.tsx";

export function JumpToEnd({ onClick }: { onClick: () => void }) {
  return (
    // It has a row of its own, so that it never covers text.
    <button
      type="button"
      onClick={onClick}
      className="mx-auto mt-2 flex items-center gap-1.5 rounded-full border border-line bg-surface px-3 py-1.5 text-sm shadow-md"
    >
      <Icon name="down" />
      Jump to latest
    </button>
  );
}
