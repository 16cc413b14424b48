/** The place of something that is being loaded. */

/** `label` says what is loaded, such as "Loading runs". */
export function Loading({ label }: { label: string }) {
  return <div className="skeleton h-16 rounded-xl bg-sunken" role="status" aria-label={label} />;
}
