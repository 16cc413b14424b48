/** An agent's initial. */
export function Avatar({ name }: { name: string }) {
  return (
    <span
      aria-hidden="true"
      className="flex size-8 shrink-0 items-center justify-center rounded-full bg-accent text-sm font-semibold text-on-accent"
    >
      {name.charAt(0).toUpperCase()}
    </span>
  );
}
