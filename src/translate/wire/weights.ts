/** Envoy adds up weights in 32 bits and refuses sums that do not fit. */
const LARGEST_SUM = 2 ** 31;

/** The weights, or smaller ones in about the same proportion where their sum is too large. None becomes zero. */
export function fittingWeights(weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (sum <= LARGEST_SUM) return weights;
  return weights.map((weight) => Math.max(1, Math.floor((weight / sum) * LARGEST_SUM)));
}
