/** A button that scrolls to the newest message. */
import { Icon } from "./icon.tsx";

export function JumpToEnd({ onClick }: { onClick: () => void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      className="absolute bottom-3 left-1/2 flex -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-surface px-3 py-1.5 text-sm shadow-md"
    >
      <Icon name="down" />
      Jump to latest
    </button>
  );
}
