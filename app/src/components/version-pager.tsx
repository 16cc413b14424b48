/** The versions of a turn, which edits and repeated answers make: the number of the shown version, and buttons to the others. */
import { Icon } from "./icon.tsx";
import { ACTION } from "./icon-button.tsx";

interface VersionPagerProps {
  /** From 0. */
  index: number;
  count: number;
  onChoose: (index: number) => void;
}

export function VersionPager({ index, count, onChoose }: VersionPagerProps) {
  /** A disabled button would lose the focus. */
  const step = (to: number, label: string, className: string) => (
    <button
      type="button"
      aria-label={label}
      aria-disabled={to < 0 || to === count}
      onClick={() => to >= 0 && to < count && onChoose(to)}
      className={`${ACTION} aria-disabled:opacity-40`}
    >
      <Icon name="chevron" className={`size-3.5 ${className}`} />
    </button>
  );
  return (
    <fieldset data-testid="versions" className="flex items-center text-xs text-muted">
      <legend className="sr-only">Versions of this message</legend>
      {step(index - 1, "Previous version", "rotate-180")}
      <span aria-live="polite">
        <span aria-hidden>
          {index + 1}/{count}
        </span>
        <span className="sr-only">
          Version {index + 1} of {count}
        </span>
      </span>
      {step(index + 1, "Next version", "")}
    </fieldset>
  );
}
