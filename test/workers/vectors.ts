/** The store of vectors of `VectorAgent`. Tests change its mood. */
import { systemClock } from "../../src/ports/system.ts";
import { LateVectors } from "../support/late-vectors.ts";

export const vectors = new LateVectors(100, systemClock);
