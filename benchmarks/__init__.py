"""minigraph beside the real frameworks: `python -m benchmarks`, from the top of the repository.

workloads.py      what is computed: data, sizes, and (references.py) the right answers
runners/          how each framework runs it, a file for each; natural/ is what a user of the
                  framework would write, forms/ how its compiler shows what it made of that
environments.py   a virtual environment for each framework
harness/          runs the runners, in processes of their own, and keeps the results
reporting/        tables, figures and bars, all from the results
comparing/        what each compiler made of one workload
compiler/         what minigraph's compiler itself costs
"""
