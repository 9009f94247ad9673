"""The front door: estimators in scikit-learn's manner, which scale, choose and report in the user's units."""
