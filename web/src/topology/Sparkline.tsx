interface Props {
  values: readonly number[];
  width?: number;
  height?: number;
}

/** A line of the last values without axes: the number beside it says how much. */
export function Sparkline({ values, width = 44, height = 12 }: Props) {
  if (values.length < 2) return null;
  const top = Math.max(...values);
  const points = values.map((value, place) => {
    const x = (place / (values.length - 1)) * width;
    return `${x.toFixed(1)},${(height - 1 - (value / top) * (height - 2)).toFixed(1)}`;
  });
  return (
    <svg width={width} height={height} aria-hidden="true" data-sparkline>
      <polyline points={points.join(" ")} fill="none" stroke="currentColor" strokeWidth={1.25} />
    </svg>
  );
}
