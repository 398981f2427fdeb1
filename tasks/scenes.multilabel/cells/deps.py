%pip install scikit-multilearn==0.2.0
