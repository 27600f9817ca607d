const WIDTH = 56;
const HEIGHT = 14;

/** Numbers over time as a line, without axes: the number beside it says where it ends. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(...values, 1e-9);
  const step = WIDTH / Math.max(1, values.length - 1);
  const points = values.map((value, i) => `${i * step},${HEIGHT - 1 - (value / most) * (HEIGHT - 2)}`);
  return (
    <svg width={WIDTH} height={HEIGHT} aria-hidden="true">
      <polyline
        points={points.join(" ")}
        fill="none"
        stroke="var(--mantine-primary-color-filled)"
        strokeWidth={1.2}
      />
    </svg>
  );
}
