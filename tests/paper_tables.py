"""The tables of the paper's appendix, transcribed as they stand there (first-order filter, gamma = alpha/beta).

`tab:gkg` (LFM kernels), `tab:hzx-12`, `tab:hzx-32`, `tab:hzx-52` (features of the force) and `tab:mkg-12-cos` to
`tab:mkg-52-sin` (features of the response), each with its gamma = lambda row where it has one.
"""

from numpy import arctan, cos, exp, sin, sqrt

__all__ = ["force_feature", "kernel", "resonant_kernel_12", "response"]


def kernel(p, r, lam, sigma2, beta, gamma):
    """`tab:gkg`: Cov[f(t), f(t')] at distance r, gamma != lambda."""
    d = gamma**2 - lam**2
    if p == 0:
        return sigma2 / (beta**2 * gamma * d) * (gamma * exp(-lam * r) - lam * exp(-gamma * r))
    if p == 1:
        slow = sigma2 / beta**2 * ((lam * r + 1) / d - 2 * lam**2 / d**2) * exp(-lam * r)
        return slow + 2 * lam**3 * sigma2 / (beta**2 * gamma * d**2) * exp(-gamma * r)
    slow = (lam**2 * r**2 + 3) / d + lam * (3 * gamma**2 - 7 * lam**2) * r / d**2
    slow = slow + 4 * lam**2 * (3 * lam**2 - gamma**2) / d**3
    fast = 8 * lam**5 * sigma2 / (3 * beta**2 * gamma * d**3) * exp(-gamma * r)
    return sigma2 / (3 * beta**2) * slow * exp(-lam * r) - fast


def resonant_kernel_12(r, lam, sigma2, beta):
    """The gamma = lambda case that the appendix gives beside `tab:gkg`, Matérn-1/2."""
    return sigma2 * (1 + lam * r) / (2 * beta**2 * lam**2) * exp(-lam * r)


def force_feature(p, kind, t, z, a, b, lam):
    """`tab:hzx-12`, `tab:hzx-32`, `tab:hzx-52`: Cov[u(t), v]."""
    if a <= t <= b:
        return cos(z * (t - a)) if kind == "cos" else sin(z * (t - a))
    r = min(abs(t - a), abs(t - b))
    signed = t - a if t < a else t - b
    rows = {
        (0, "cos"): 1.0,
        (0, "sin"): 0.0,
        (1, "cos"): 1 + lam * r,
        (1, "sin"): z * signed,
        (2, "cos"): 1 + lam * r - (z**2 - lam**2) * r**2 / 2,
        (2, "sin"): z * signed * (1 + lam * r),
    }
    return rows[p, kind] * exp(-lam * r)


def response(p, kind, t, z, a, b, lam, beta, gamma):
    """`tab:mkg-12-cos` to `tab:mkg-52-sin`: Cov[f(t), v]; the rows "t > b" by gamma = lambda or not."""
    ra, rb = abs(t - a), abs(t - b)
    theta = -arctan(z / gamma)
    wave = (cos if kind == "cos" else sin)(z * ra + theta) / (beta * sqrt(z**2 + gamma**2))
    table = _TABLES[p, kind]
    if t < a:
        return table["before"](ra, z, lam, beta, gamma) * exp(-lam * ra)
    transient = table["transient"](z, lam, beta, gamma) * exp(-gamma * ra)
    if t <= b:
        return wave + transient
    if gamma == lam:
        at_a, at_b = table["resonant"](rb, z, lam, beta)
        return at_a * exp(-lam * ra) + at_b * exp(-lam * rb)
    fast, slow = table["after"](rb, z, lam, beta, gamma)
    return transient + fast * exp(-gamma * rb) + slow * exp(-lam * rb)


_TABLES = {
    (0, "cos"): {
        "before": lambda r, z, lam, be, g: 1 / (be * (g + lam)),
        "transient": lambda z, lam, be, g: -(g / (be * (z**2 + g**2)) - 1 / (be * (g + lam))),
        "after": lambda r, z, lam, be, g: (
            g / (be * (z**2 + g**2)) - 1 / (be * (g - lam)),
            1 / (be * (g - lam)),
        ),
        "resonant": lambda r, z, lam, be: (
            -(lam / (be * (z**2 + lam**2)) - 1 / (2 * be * lam)),
            lam / (be * (z**2 + lam**2)) + r / be,
        ),
    },
    (0, "sin"): {
        "before": lambda r, z, lam, be, g: 0.0,
        "transient": lambda z, lam, be, g: z / (be * (z**2 + g**2)),
        "after": lambda r, z, lam, be, g: (-z / (be * (z**2 + g**2)), 0.0),
        "resonant": lambda r, z, lam, be: (z / (be * (z**2 + lam**2)), -z / (be * (z**2 + lam**2))),
    },
    (1, "cos"): {
        "before": lambda r, z, lam, be, g: (lam * r + 1) / (be * (g + lam)) + lam / (be * (g + lam) ** 2),
        "transient": lambda z, lam, be, g: -(g / (be * (z**2 + g**2)) - (g + 2 * lam) / (be * (g + lam) ** 2)),
        "after": lambda r, z, lam, be, g: (
            g / (be * (z**2 + g**2)) - (g - 2 * lam) / (be * (g - lam) ** 2),
            (lam * r + 1) / (be * (g - lam)) - lam / (be * (g - lam) ** 2),
        ),
        "resonant": lambda r, z, lam, be: (
            -(lam / (be * (z**2 + lam**2)) - 3 / (4 * be * lam)),
            lam / (be * (z**2 + lam**2)) + (lam * r + 2) * r / (2 * be),
        ),
    },
    (1, "sin"): {
        "before": lambda r, z, lam, be, g: -z / be * (r / (g + lam) + 1 / (g + lam) ** 2),
        "transient": lambda z, lam, be, g: z / be * (1 / (z**2 + g**2) - 1 / (g + lam) ** 2),
        "after": lambda r, z, lam, be, g: (
            -z / be * (1 / (z**2 + g**2) - 1 / (g - lam) ** 2),
            z / be * (r / (g - lam) - 1 / (g - lam) ** 2),
        ),
        "resonant": lambda r, z, lam, be: (
            z / be * (1 / (z**2 + lam**2) - 1 / (4 * lam**2)),
            z / be * (-1 / (z**2 + lam**2) + r**2 / 2),
        ),
    },
    (2, "cos"): {
        "before": lambda r, z, lam, be, g: (
            -(
                (z**2 - lam**2) * r**2 / (2 * be * (g + lam))
                + (z**2 - g * lam - 2 * lam**2) * r / (be * (g + lam) ** 2)
                + (z**2 - g**2 - 3 * g * lam - 3 * lam**2) / (be * (g + lam) ** 3)
            )
        ),
        "transient": lambda z, lam, be, g: (
            -((z**2 - g**2 - 3 * g * lam - 3 * lam**2) / (be * (g + lam) ** 3) + g / (be * (z**2 + g**2)))
        ),
        "after": lambda r, z, lam, be, g: (
            (z**2 - g**2 + 3 * g * lam - 3 * lam**2) / (be * (g - lam) ** 3) + g / (be * (z**2 + g**2)),
            -(
                (z**2 - lam**2) * r**2 / (2 * be * (g - lam))
                - (z**2 + g * lam - 2 * lam**2) * r / (be * (g - lam) ** 2)
                + (z**2 - g**2 + 3 * g * lam - 3 * lam**2) / (be * (g - lam) ** 3)
            ),
        ),
        "resonant": lambda r, z, lam, be: (
            -((z**2 - 7 * lam**2) / (8 * be * lam**3) + lam / (be * (z**2 + lam**2))),
            lam / (be * (z**2 + lam**2)) - ((z**2 - lam**2) * r**2 - 3 * lam * r - 6) * r / (6 * be),
        ),
    },
    (2, "sin"): {
        "before": lambda r, z, lam, be, g: (
            -z / be * (lam * r**2 / (g + lam) + (g + 3 * lam) * r / (g + lam) ** 2 + (g + 3 * lam) / (g + lam) ** 3)
        ),
        "transient": lambda z, lam, be, g: z / be * (1 / (z**2 + g**2) - (g + 3 * lam) / (g + lam) ** 3),
        "after": lambda r, z, lam, be, g: (
            -z / be * (1 / (z**2 + g**2) - (g - 3 * lam) / (g - lam) ** 3),
            z / be * (lam * r**2 / (g - lam) + (g - 3 * lam) * r / (g - lam) ** 2 - (g - 3 * lam) / (g - lam) ** 3),
        ),
        "resonant": lambda r, z, lam, be: (
            z / be * (1 / (z**2 + lam**2) - 1 / (2 * lam**2)),
            -z / be * (1 / (z**2 + lam**2) - (2 * lam * r + 3) * r**2 / 6),
        ),
    },
}
