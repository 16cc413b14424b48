/** A media type without its parameters, in lower case, by its registered name. */
export function plainType(mediaType: string | undefined): string | undefined {
  const plain = mediaType?.split(";")[0]?.trim().toLowerCase();
  return plain === "image/jpg" ? "image/jpeg" : plain;
}
