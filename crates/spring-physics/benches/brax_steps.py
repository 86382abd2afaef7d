"""Physics steps a second of brax's spring backend on this CPU, beside `cargo bench -p spring-physics`.

    pip install brax==0.10.1 jax==0.4.23 jaxlib==0.4.23 mujoco==3.1.3 mujoco-mjx==3.1.3 "numpy<2" "scipy<1.13"
    python3 crates/spring-physics/benches/brax_steps.py ant humanoid

512 environments of brax's own model, 20 control steps of 10 physics steps with uniform actions in one compiled loop; nine rounds.
A control step of brax also makes observations and rewards; nothing is reset.
"""

import statistics
import sys
import time

import jax
from brax import envs

ENVIRONMENTS = 512
CONTROL_STEPS = 20
ROUNDS = 9


def measure(name):
    env = envs.get_environment(name, backend="spring")
    step = jax.vmap(env.step)

    @jax.jit
    def run(state, key):
        def one(state, key):
            actions = jax.random.uniform(key, (ENVIRONMENTS, env.action_size), minval=-1.0, maxval=1.0)
            return step(state, actions), None

        return jax.lax.scan(one, state, jax.random.split(key, CONTROL_STEPS))[0]

    state = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), ENVIRONMENTS))
    # Twice: the second call compiles once more, for the types that the first one returns.
    for key in range(2):
        state = jax.block_until_ready(run(state, jax.random.PRNGKey(key)))
    rates = []
    for key in range(ROUNDS):
        start = time.perf_counter()
        jax.block_until_ready(run(state, jax.random.PRNGKey(2 + key)))
        rates.append(ENVIRONMENTS * CONTROL_STEPS * env._n_frames / (time.perf_counter() - start))
    rates = [rate / 1e3 for rate in rates]
    print(f"{name}: {statistics.median(rates):.0f}k physics steps a second ({min(rates):.0f}k to {max(rates):.0f}k)")


for name in sys.argv[1:] or ["ant", "humanoid"]:
    measure(name)
