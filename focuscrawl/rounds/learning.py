"""What is learned after a round, from the latest pages of all buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from focuscrawl.rounds.context import RoundsContext

_ENOUGH = 10  # judged URLs that can be learned from


def learn(context: RoundsContext, round_: int) -> dict[str, Any]:
    """Learn from what the latest rounds have judged.

    Done already, it does nothing.

    Returns
    -------
    Of the model its ``version`` and the round it was ``learned_in``; ``oldest``, the first round
    that was learned from, now or in any round to come
    """
    tables = context.tables
    done = tables.read_json(f"models/{round_:05}.json")
    if done is not None:
        return done
    last = tables.read_json(f"models/{round_ - 1:05}.json") or {"version": 0, "learned_in": 0}
    model = last | {"oldest": round_}
    strategy = context.strategy()
    if strategy.learns:
        previous = context.model(round_ - 1)
        if previous is not None:
            strategy.adopt(strategy.take_up(previous.version, previous.state))
        pool = strategy.pool()
        names = _latest(context, round_, pool.options.memory)
        model["oldest"] = int(names[0].rpartition("/")[2]) if names else round_
        for name in names:
            judged = tables.read_bytes(name)
            if judged:
                pool.add(judged)
        if len(pool) >= _ENOUGH:
            state, instances, metrics = strategy.train(pool)
            tables.write_bytes(f"models/{round_:05}.npz", state)
            model |= {"version": model["version"] + 1, "learned_in": round_}
            model |= {"instances": instances, "metrics": metrics}
    tables.write_json(f"models/{round_:05}.json", model)
    return model


def _latest(context: RoundsContext, round_: int, memory: int) -> list[str]:
    """Return the latest files of judged URLs, oldest first, of at least `memory` fetches."""
    names: list[str] = []
    fetched = 0
    for each in range(round_, 0, -1):
        committed = context.tables.read_json(f"fetched/{each:05}.json") or {"buckets": {}}
        for bucket, n in sorted(committed["buckets"].items(), reverse=True):
            names.insert(0, f"judged/{int(bucket):03}/{each:05}")
            fetched += n
        if fetched >= memory:
            break
    return names
