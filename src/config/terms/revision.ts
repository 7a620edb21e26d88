/** The label by which several control planes share a configuration: each acts upon its own revision and on what names none. */
export const REVISION_LABEL = "istio.io/rev";
