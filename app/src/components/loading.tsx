/** A placeholder for loading content. */

/** `label` names the content for screen readers, such as "Loading runs". */
export function Loading({ label }: { label: string }) {
  return <div className="skeleton h-16 rounded-xl bg-sunken" role="status" aria-label={label} />;
}
