/** The functions of Node's modules that this folder uses. Workers have them too. */
declare module "node:crypto" {
  interface Hash {
    update(bytes: Uint8Array): Hash;
    digest(): Uint8Array;
  }
  export function createHash(algorithm: "sha1"): Hash;
}

declare module "node:zlib" {
  export function inflateSync(
    bytes: Uint8Array,
    options: { info: true; chunkSize: number; maxOutputLength: number },
  ): unknown;
  export function deflateSync(bytes: Uint8Array): Uint8Array;
  export function crc32(bytes: Uint8Array): number;
}
