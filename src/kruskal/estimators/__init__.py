"""The models as estimators in the style of scikit-learn, which need not be installed."""
